package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

const settingsPath = "/circulation/settings"

// settingRoutes are FOLIO's (mod-circulation, interface circulation-settings). Storage checks the
// settings.
func (h circulation) settingRoutes() []web.Route {
	const one, permission = settingsPath + "/:id", "circulation.settings"
	const schema = web.Schema("circulation-setting")
	return web.WithInterface("circulation-settings 1.0", []web.Route{
		{Method: http.MethodGet, Path: settingsPath, Permission: permission + ".collection.get", Refusals: tooLong, Query: web.FolioPage(), Endpoint: web.JSON(http.StatusOK, h.listSettings)},
		{Method: http.MethodPost, Path: settingsPath, Permission: permission + ".item.post", Body: schema, Endpoint: web.JSON(http.StatusCreated, h.createSetting).Of(schema).With(web.Location)},
		{Method: http.MethodGet, Path: one, Permission: permission + ".item.get", Endpoint: web.JSON(http.StatusOK, fromPathID("circulation setting", h.Storage.Setting)).Of(schema)},
		{Method: http.MethodPut, Path: one, Permission: permission + ".item.put", Body: schema, Endpoint: web.Empty(http.StatusNoContent, replaceByID("circulation setting", h.Storage.ReplaceSetting))},
		{Method: http.MethodDelete, Path: one, Permission: permission + ".item.delete", Endpoint: web.Empty(http.StatusNoContent, h.deleteSetting)},
	})
}

type settingPage struct {
	Settings     []json.RawMessage `json:"circulationSettings"`
	TotalRecords int               `json:"totalRecords"`
}

func (h circulation) listSettings(c echo.Context) (settingPage, error) {
	found, total, err := listPage(c, h.Storage.Settings)
	return settingPage{Settings: found, TotalRecords: total}, err
}

func (h circulation) createSetting(c echo.Context) (json.RawMessage, error) {
	return storeBody(c, settingsPath, h.Storage.CreateSetting)
}

// deleteSetting handles DELETE /circulation/settings/{id}: 204 also if there is none, as in FOLIO.
func (h circulation) deleteSetting(c echo.Context) error {
	if err := deleteByID("circulation setting", h.Storage.DeleteSetting)(c); !fault.Is(err, fault.NotFound) {
		return err
	}
	return nil
}
