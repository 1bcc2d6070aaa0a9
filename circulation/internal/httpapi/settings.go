package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// CirculationSettings keeps the tenant's circulation settings.
type CirculationSettings interface {
	// Settings returns a page of the settings that match a CQL query ("" is all), and how many
	// match in all. Fault: Malformed for bad CQL.
	Settings(ctx context.Context, query string, offset, limit int) (settings []json.RawMessage, total int, err error)
	// Setting returns a setting. Fault: NotFound.
	Setting(ctx context.Context, id string) (json.RawMessage, error)
	// CreateSetting stores a setting in place of one of the same name, and returns it as stored.
	CreateSetting(ctx context.Context, setting json.RawMessage) (json.RawMessage, error)
	// ReplaceSetting replaces a setting. Fault: NotFound.
	ReplaceSetting(ctx context.Context, id string, setting json.RawMessage) error
	// DeleteSetting removes a setting. Fault: NotFound.
	DeleteSetting(ctx context.Context, id string) error
}

const settingsPath = "/circulation/settings"

// settingRoutes are FOLIO's (mod-circulation, interface circulation-settings). Storage checks the
// settings.
func settingRoutes(o Options) []web.Route {
	const one, permission = settingsPath + "/:id", "circulation.settings"
	const schema = web.Schema("circulation-setting")
	h := circulation{o}
	return web.WithInterface("circulation-settings 1.0", []web.Route{
		{Method: http.MethodGet, Path: settingsPath, Permission: permission + ".collection.get", Refusals: tooLong, Query: web.FolioPage(), Endpoint: web.JSON(http.StatusOK, h.listSettings)},
		{Method: http.MethodPost, Path: settingsPath, Permission: permission + ".item.post", Body: schema, Endpoint: web.JSON(http.StatusCreated, h.createSetting).Of(schema).With(web.Location)},
		{Method: http.MethodGet, Path: one, Permission: permission + ".item.get", Endpoint: web.JSON(http.StatusOK, fromPathID("circulation setting", o.Settings.Setting)).Of(schema)},
		{Method: http.MethodPut, Path: one, Permission: permission + ".item.put", Body: schema, Endpoint: web.Empty(http.StatusNoContent, replaceByID("circulation setting", o.Settings.ReplaceSetting))},
		{Method: http.MethodDelete, Path: one, Permission: permission + ".item.delete", Endpoint: web.Empty(http.StatusNoContent, h.deleteSetting)},
	})
}

type settingPage struct {
	Settings     []json.RawMessage `json:"circulationSettings"`
	TotalRecords int               `json:"totalRecords"`
}

func (h circulation) listSettings(c echo.Context) (settingPage, error) {
	found, total, err := listPage(c, h.Settings.Settings)
	return settingPage{Settings: found, TotalRecords: total}, err
}

func (h circulation) createSetting(c echo.Context) (json.RawMessage, error) {
	return storeBody(c, settingsPath, h.Settings.CreateSetting)
}

// deleteSetting handles DELETE /circulation/settings/{id}: 204 also if there is none, as in FOLIO.
func (h circulation) deleteSetting(c echo.Context) error {
	if err := deleteByID("circulation setting", h.Settings.DeleteSetting)(c); !fault.Is(err, fault.NotFound) {
		return err
	}
	return nil
}
