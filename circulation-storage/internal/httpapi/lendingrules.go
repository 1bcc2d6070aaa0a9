package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/jsonschema"
	"checkoutlock/web"
)

// RulesRoutes are FOLIO's /circulation-rules-storage.
func RulesRoutes(store records.RulesStore) []web.Route {
	const path, permission = "/circulation-rules-storage", "circulation-storage.circulation-rules"
	put := func(ctx context.Context, r schemas.CirculationRules) error {
		return store.SetRules(ctx, r.RulesAsText, r.PoliciesExist)
	}
	return web.WithInterface("circulation-rules-storage 1.0", []web.Route{
		{Method: http.MethodGet, Path: path, Permission: permission + ".get", Endpoint: web.JSON(http.StatusOK, web.FromContext(store.Rules))},
		{Method: http.MethodPut, Path: path, Permission: permission + ".put", Body: web.Schema("circulation-rules"), Endpoint: web.Empty(http.StatusNoContent, writeParsed(readRules, put))},
	})
}

func readRules(body []byte) (schemas.CirculationRules, error) {
	return jsonschema.ReadChecked[schemas.CirculationRules]("circulation-rules", body)
}

// PatronBlockStore keeps the automated blocks of the tenant in ctx, as one
// document for each patron who has some.
type PatronBlockStore interface {
	// PatronBlocks returns a patron's document with the blocks by limits of the patron's group;
	// nil if there are none.
	PatronBlocks(ctx context.Context, userID string) (json.RawMessage, error)
	// SetPatronBlocks replaces it.
	SetPatronBlocks(ctx context.Context, userID string, doc json.RawMessage) error
}

type patronBlockHandlers struct{ store PatronBlockStore }

// PatronBlockRoutes are mod-patron-blocks' /automated-patron-blocks/{userId}. Blocks by loans are
// computed; PUT (ours) stores blocks from elsewhere, such as those by fees.
func PatronBlockRoutes(store PatronBlockStore) []web.Route {
	const path, permission = "/automated-patron-blocks/:id", "patron-blocks.automated-patron-blocks.collection"
	h := patronBlockHandlers{store: store}
	return web.WithInterface("automated-patron-blocks 0.1", []web.Route{
		{Method: http.MethodGet, Path: path, Permission: permission + ".get", Endpoint: web.JSON(http.StatusOK, fromPathID(h.get)).Of("automated-patron-blocks")},
		{Method: http.MethodPut, Path: path, Permission: permission + ".put", Body: web.Schema("automated-patron-blocks"), Endpoint: web.Empty(http.StatusNoContent, h.put)},
	})
}

// noBlocks is the answer for a patron without blocks.
const noBlocks = `{"automatedPatronBlocks":[]}`

// get handles GET /automated-patron-blocks/{userId}: 200. A patron without blocks
// has an empty list, and so has any id that is no patron's, as in mod-patron-blocks.
func (h patronBlockHandlers) get(ctx context.Context, id string) (json.RawMessage, error) {
	doc, err := h.store.PatronBlocks(ctx, id)
	if doc == nil {
		doc = json.RawMessage(noBlocks)
	}
	return doc, err
}

// put handles PUT /automated-patron-blocks/{userId}: 204. An empty list lifts the
// blocks.
func (h patronBlockHandlers) put(c echo.Context) error {
	id, err := readPathID(c)
	if err != nil {
		return err
	}
	body, err := web.ReadBody(c)
	if err != nil {
		return err
	}
	doc, err := jsonschema.ReadChecked[json.RawMessage]("automated-patron-blocks", body) // without what is null
	if err != nil {
		return err
	}
	return h.store.SetPatronBlocks(c.Request().Context(), id, doc)
}
