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

type settingHandlers struct{ settings CirculationSettings }

const settingsPath = "/circulation/settings"

// settingRoutes are FOLIO's (mod-circulation, interface circulation-settings). Storage checks the
// settings.
func settingRoutes(s CirculationSettings) []web.Route {
	const one, permission = settingsPath + "/:id", "circulation.settings"
	const schema = web.Schema("circulation-setting")
	h := settingHandlers{s}
	return web.WithInterface("circulation-settings 1.0", []web.Route{
		{Method: http.MethodGet, Path: settingsPath, Permission: permission + ".collection.get", Refusals: tooLong, Query: web.FolioPage(), Endpoint: web.JSON(http.StatusOK, h.list)},
		{Method: http.MethodPost, Path: settingsPath, Permission: permission + ".item.post", Body: schema, Endpoint: web.JSON(http.StatusCreated, h.create).Of(schema).With(web.Location)},
		{Method: http.MethodGet, Path: one, Permission: permission + ".item.get", Endpoint: web.JSON(http.StatusOK, h.get).Of(schema)},
		{Method: http.MethodPut, Path: one, Permission: permission + ".item.put", Body: schema, Endpoint: web.Empty(http.StatusNoContent, replaceByID("circulation setting", s.ReplaceSetting))},
		{Method: http.MethodDelete, Path: one, Permission: permission + ".item.delete", Endpoint: web.Empty(http.StatusNoContent, h.delete)},
	})
}

type settingPage struct {
	Settings     []json.RawMessage `json:"circulationSettings"`
	TotalRecords int               `json:"totalRecords"`
}

func (h settingHandlers) list(c echo.Context) (settingPage, error) {
	found, total, err := listPage(c, h.settings.Settings)
	return settingPage{Settings: found, TotalRecords: total}, err
}

func (h settingHandlers) get(c echo.Context) (json.RawMessage, error) {
	id, err := readPathID(c, "circulation setting")
	if err != nil {
		return nil, err
	}
	setting, err := h.settings.Setting(c.Request().Context(), id)
	return setting, explainMissing(err, "circulation setting", id)
}

func (h settingHandlers) create(c echo.Context) (json.RawMessage, error) {
	return storeBody(c, settingsPath, h.settings.CreateSetting)
}

// delete handles DELETE /circulation/settings/{id}: 204 also if there is none, as in FOLIO.
func (h settingHandlers) delete(c echo.Context) error {
	if err := deleteByID("circulation setting", h.settings.DeleteSetting)(c); !fault.Is(err, fault.NotFound) {
		return err
	}
	return nil
}
