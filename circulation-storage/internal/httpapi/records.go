package httpapi

import (
	"io"
	"math"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

const defaultLimit = 10 // RMB's

// recordHandlers serves one type of records.
type recordHandlers struct {
	store records.Store
	t     records.Type
}

// deletedByQuery returns the types that have DELETE of a collection. FOLIO knows it
// for more of them.
func deletedByQuery() []records.Type { return []records.Type{records.Loan()} }

// RecordRoutes are the endpoints of all types: a collection with GET and POST, a
// record with GET, PUT and DELETE; and DELETE of the collections in deletedByQuery.
func RecordRoutes(store records.Store) []web.Route {
	var routes []web.Route
	for _, t := range records.Types() {
		h := recordHandlers{store: store, t: t}
		one := t.Path + "/:id"
		routes = append(routes,
			web.Route{Method: http.MethodGet, Path: t.Path, Handler: h.list, Permission: t.Permission + ".collection.get"},
			web.Route{Method: http.MethodPost, Path: t.Path, Handler: h.create, Permission: t.Permission + ".item.post"},
			web.Route{Method: http.MethodGet, Path: one, Handler: h.get, Permission: t.Permission + ".item.get"},
			web.Route{Method: http.MethodPut, Path: one, Handler: h.update, Permission: t.Permission + ".item.put"},
			web.Route{Method: http.MethodDelete, Path: one, Handler: h.delete, Permission: t.Permission + ".item.delete"},
		)
	}
	for _, t := range deletedByQuery() {
		h := recordHandlers{store: store, t: t}
		routes = append(routes, web.Route{
			Method: http.MethodDelete, Path: t.Path, Handler: h.deleteMatching, Permission: t.Permission + ".collection.delete",
		})
	}
	return routes
}

// list handles GET of a collection: 200 with a page of it.
func (h recordHandlers) list(c echo.Context) error {
	p, err := readPage(c)
	if err != nil {
		return err
	}
	return web.StreamJSON(c, func(w io.Writer) error {
		out := &collectionWriter{w: w, settings: h.isSettings(), key: h.t.Collection, noTotal: p.Total == records.TotalNone}
		if err := h.store.List(c.Request().Context(), h.t, p, out); err != nil {
			return err
		}
		return out.end()
	})
}

// readPage reads RMB's four query parameters of collections.
func readPage(c echo.Context) (records.Page, error) {
	p := records.Page{Query: c.QueryParam("query")}
	var err error
	if p.Offset, err = web.QueryInt(c, "offset", 0, 0, math.MaxInt32); err != nil {
		return p, err
	}
	if p.Limit, err = web.QueryInt(c, "limit", defaultLimit, 0, math.MaxInt32); err != nil {
		return p, err
	}
	switch mode := c.QueryParam("totalRecords"); mode {
	case "", "auto", "estimated":
	case "exact":
		p.Total = records.TotalExact
	case "none":
		p.Total = records.TotalNone
	default:
		return p, fault.New(fault.Malformed, "Parameter totalRecords is %q, allowed are exact, estimated, none, auto", mode)
	}
	return p, nil
}

// isSettings tells the one type whose module is not built on RMB: its envelope
// and its POST are its own.
func (h recordHandlers) isSettings() bool { return h.t.Path == records.SettingsEntry().Path }

// create handles POST to a collection: 201 with the record, for settings 204.
func (h recordHandlers) create(c echo.Context) error {
	r, err := h.read(c, "")
	if err != nil {
		return err
	}
	stored, err := h.store.Create(c.Request().Context(), h.t, r)
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderLocation, h.t.Path+"/"+r.ID())
	if h.isSettings() {
		return c.NoContent(http.StatusNoContent)
	}
	return c.JSON(http.StatusCreated, stored)
}

// get handles GET of a record: 200.
func (h recordHandlers) get(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	doc, err := h.store.Get(c.Request().Context(), h.t, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, doc)
}

// update handles PUT of a record: 204.
func (h recordHandlers) update(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	r, err := h.read(c, id)
	if err != nil {
		return err
	}
	if err := h.store.Update(c.Request().Context(), h.t, r); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// delete handles DELETE of a record: 204.
func (h recordHandlers) delete(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	if err := h.store.Delete(c.Request().Context(), h.t, id); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// deleteMatching handles DELETE of a collection: 204. Of two queries it would be
// unclear which one names what to delete.
func (h recordHandlers) deleteMatching(c echo.Context) error {
	queries := c.QueryParams()["query"]
	if len(queries) > 1 {
		return fault.New(fault.Malformed, "Parameter query is there %d times; one is expected", len(queries))
	}
	if err := h.store.DeleteMatching(c.Request().Context(), h.t, strings.Join(queries, "")); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// read reads a record from the body; id is the one in the path, if any.
func (h recordHandlers) read(c echo.Context, id string) (records.Record, error) {
	body, err := web.ReadBody(c)
	if err != nil {
		return nil, err
	}
	return h.t.Parse(body, id)
}

// pathID returns the id in the path. In which case it is written does not matter.
func pathID(c echo.Context) (string, error) {
	id := c.Param("id")
	if !schemas.IsUUID(id) {
		return "", fault.New(fault.Malformed, "%q in the path is no UUID, such as 0bab56e5-1ab6-4ac2-afdf-8b2df0434378", id)
	}
	return id, nil
}
