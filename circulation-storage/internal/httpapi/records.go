package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// recordHandlers serves one type of records.
type recordHandlers struct {
	store records.Store
	t     records.Type
}

// deletedByQuery returns the types that have DELETE of a collection in FOLIO, and the history of
// loans and the check-ins, which grow (ours).
func deletedByQuery() []records.Type {
	return []records.Type{
		records.User, records.MaterialType, records.LoanType, records.ServicePoint,
		records.Institution, records.Campus, records.Library, records.Location,
		records.Instance, records.Holdings, records.Item,
		records.FixedDueDateSchedule, records.LoanPolicy, records.RequestPolicy,
		records.StaffSlip, records.CancellationReason, records.Loan, records.Request, records.LoanHistory,
		records.ScheduledNotice, records.CheckInOperation,
	}
}

// RecordRoutes are the endpoints of all types: a collection with GET and POST, a
// record with GET, PUT and DELETE; and DELETE of the collections in deletedByQuery.
func RecordRoutes(store records.Store) []web.Route {
	page := web.FolioPage(web.Parameter{
		Name: "totalRecords", Meaning: "how to count all that match; auto is estimated", Allowed: []string{"exact", "estimated", "none", "auto"},
	})
	var routes []web.Route
	for _, t := range records.Types() {
		h := recordHandlers{store: store, t: t}
		one, schema := t.Path+"/:id", web.Schema(t.Schema)
		create := web.JSON(http.StatusCreated, h.create).Of(schema).With(web.Location)
		if h.isSettings() {
			create = web.Empty(http.StatusNoContent, func(c echo.Context) error { _, err := h.create(c); return err }).With(web.Location)
		}
		routes = append(routes, web.WithInterface(t.Interface, []web.Route{
			{
				Method: http.MethodGet, Path: t.Path, Permission: t.Permission + ".collection.get", Query: page, Refusals: overloaded,
				Endpoint: web.Handle(h.list, web.Answer{Status: http.StatusOK, Body: web.Collection{Key: t.Collection, Of: schema}}),
			},
			{Method: http.MethodPost, Path: t.Path, Permission: t.Permission + ".item.post", Body: schema, Refusals: refusedWrites(t), Endpoint: create},
			{Method: http.MethodGet, Path: one, Permission: t.Permission + ".item.get", Endpoint: web.JSON(http.StatusOK, fromPathID(h.get)).Of(schema)},
			{
				Method: http.MethodPut, Path: one, Permission: t.Permission + ".item.put", Body: schema, Refusals: refusedWrites(t),
				Endpoint: web.Empty(http.StatusNoContent, h.update),
			},
			{Method: http.MethodDelete, Path: one, Permission: t.Permission + ".item.delete", Refusals: []fault.Code{fault.Invalid}, Endpoint: web.Empty(http.StatusNoContent, byPathID(h.delete))},
		})...)
	}
	history := records.LoanHistory
	routes = append(routes, web.Route{
		Method: http.MethodGet, Path: history.Path, Permission: history.Permission + ".collection.get", Interface: history.Interface, Query: page, Refusals: overloaded,
		Endpoint: web.Handle(recordHandlers{store: store, t: history}.list, web.Answer{Status: http.StatusOK, Body: web.Collection{Key: history.Collection}}),
	})
	for _, t := range deletedByQuery() {
		h := recordHandlers{store: store, t: t}
		routes = append(routes, web.Route{
			Method: http.MethodDelete, Path: t.Path, Permission: t.Permission + ".collection.delete", Interface: t.Interface, Refusals: overloaded,
			Query:    web.Query{Parameters: []web.Parameter{{Name: "query", Meaning: "CQL that the records to delete match"}}},
			Endpoint: web.Empty(http.StatusNoContent, h.deleteMatching),
		})
	}
	return routes
}

// overloaded is the code of long lists and deletions by query when too many are under way.
var overloaded = []fault.Code{fault.Overloaded}

// refusedWrites are the codes of a write that showed an old _version, or is what another record is already.
func refusedWrites(t records.Type) []fault.Code {
	var codes []fault.Code
	if t.Versioned {
		codes = append(codes, fault.Conflict)
	}
	for _, u := range t.Unique {
		codes = append(codes, cmp.Or(u.Code, fault.Invalid))
	}
	return codes
}

// totals are the values of totalRecords that mean more than records.TotalEstimated.
var totals = map[string]records.Total{"exact": records.TotalExact, "none": records.TotalNone}

func (h recordHandlers) list(c echo.Context) error {
	q := web.QueryOf(c)
	p := records.Page{
		Query: q.Text("query"), Offset: q.Integer("offset"), Limit: q.Integer("limit"), Total: totals[q.Text("totalRecords")],
	}
	return web.StreamJSON(c, func(w io.Writer) error {
		out := &collectionWriter{w: w, settings: h.isSettings(), key: h.t.Collection, noTotal: p.Total == records.TotalNone}
		if err := h.store.List(c.Request().Context(), h.t, p, out); err != nil {
			return err
		}
		return out.finish()
	})
}

// isSettings reports whether the type is that of mod-settings, which is not built on
// RMB: its list and its POST differ.
func (h recordHandlers) isSettings() bool { return h.t.Path == records.SettingsEntry.Path }

// create handles POST to a collection: 201 with the record, for settings 204.
func (h recordHandlers) create(c echo.Context) (json.RawMessage, error) {
	r, err := h.readRecord(c, "")
	if err != nil {
		return nil, err
	}
	stored, err := h.store.Create(c.Request().Context(), h.t, r)
	if err != nil {
		return nil, err
	}
	if h.t.Named { // it may have replaced another record
		if r, err = records.Decode(stored); err != nil {
			return nil, fmt.Errorf("reading what was stored: %w", err)
		}
	}
	c.Response().Header().Set(echo.HeaderLocation, h.t.Path+"/"+r.ID())
	return stored, nil
}

func (h recordHandlers) get(ctx context.Context, id string) (json.RawMessage, error) {
	return h.store.Get(ctx, h.t, id)
}

func (h recordHandlers) delete(ctx context.Context, id string) error {
	return h.store.Delete(ctx, h.t, id)
}

func (h recordHandlers) update(c echo.Context) error {
	id, err := readPathID(c)
	if err != nil {
		return err
	}
	r, err := h.readRecord(c, id)
	if err != nil {
		return err
	}
	return h.store.Update(c.Request().Context(), h.t, r)
}

// deleteMatching handles DELETE of a collection: 204. It refuses two queries, because
// only one of them would choose what to delete.
func (h recordHandlers) deleteMatching(c echo.Context) error {
	q := web.QueryOf(c)
	if n := q.Count("query"); n > 1 {
		return fault.New(fault.Malformed, "Parameter query is there %d times; one is expected", n)
	}
	query := q.Text("query")
	if c.Request().URL.RawQuery == "" && h.t.Path == records.ScheduledNotice.Path {
		query = "cql.allRecords=1" // as in FOLIO; a misspelt parameter deletes nothing
	}
	return h.store.DeleteMatching(c.Request().Context(), h.t, query)
}

// readRecord reads a record from the body; id is the one in the path, if any.
func (h recordHandlers) readRecord(c echo.Context, id string) (records.Record, error) {
	body, err := web.ReadBody(c)
	if err != nil {
		return nil, err
	}
	return h.t.Parse(body, id)
}

// fromPathID returns the handler of a function that takes the id in the path.
func fromPathID[T any](f func(ctx context.Context, id string) (T, error)) func(echo.Context) (T, error) {
	return func(c echo.Context) (none T, err error) {
		id, err := readPathID(c)
		if err != nil {
			return none, err
		}
		return f(c.Request().Context(), id)
	}
}

// byPathID is fromPathID for what answers without a body.
func byPathID(f func(ctx context.Context, id string) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		_, err := fromPathID(func(ctx context.Context, id string) (struct{}, error) { return struct{}{}, f(ctx, id) })(c)
		return err
	}
}

// readPathID returns the id in the path, in either case.
func readPathID(c echo.Context) (string, error) {
	id := c.Param("id")
	if !schemas.IsUUID(id) {
		return "", fault.New(fault.Malformed, "%q in the path is no UUID, such as 0bab56e5-1ab6-4ac2-afdf-8b2df0434378", id)
	}
	return id, nil
}
