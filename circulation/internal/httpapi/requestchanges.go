package httpapi

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// RequestChanges changes requests that were placed.
type RequestChanges interface {
	// Edit replaces a request, or ends it. An unknown id places it.
	Edit(ctx context.Context, id string, body []byte) error
	// Delete removes a request. Fault: NotFound.
	Delete(ctx context.Context, id string) error
	// DeleteMatching removes the requests that match a CQL query. Fault: Malformed for an empty or
	// bad query.
	DeleteMatching(ctx context.Context, query string) error
}

type requestChangeHandlers struct{ changes RequestChanges }

// requestChangeRoutes are FOLIO's (mod-circulation, interface circulation).
func requestChangeRoutes(changes RequestChanges) []web.Route {
	const path = "/circulation/requests"
	h := requestChangeHandlers{changes}
	return []web.Route{
		{
			Method: http.MethodPut, Path: path + "/:id", Permission: "circulation.requests.item.put",
			Body: web.Schema("request"), Endpoint: web.Empty(http.StatusNoContent, h.edit),
		},
		{
			Method: http.MethodDelete, Path: path + "/:id", Permission: "circulation.requests.item.delete",
			Endpoint: web.Empty(http.StatusNoContent, h.delete),
		},
		{
			Method: http.MethodDelete, Path: path, Permission: "circulation.requests.collection.delete",
			Query:    web.Query{Parameters: []web.Parameter{{Name: "query", Meaning: "CQL that the requests to delete match"}}},
			Endpoint: web.Empty(http.StatusNoContent, h.deleteMatching),
		},
	}
}

func (h requestChangeHandlers) edit(c echo.Context) error {
	id, err := readPathID(c, "request")
	if err != nil {
		return err
	}
	body, err := web.ReadUnique(c)
	if err != nil {
		return err
	}
	return h.changes.Edit(c.Request().Context(), id, body)
}

func (h requestChangeHandlers) delete(c echo.Context) error {
	id, err := readPathID(c, "request")
	if err != nil {
		return err
	}
	return h.changes.Delete(c.Request().Context(), id)
}

// deleteMatching refuses two queries, because only one of them would choose what to delete.
func (h requestChangeHandlers) deleteMatching(c echo.Context) error {
	q := web.QueryOf(c)
	if n := q.Count("query"); n > 1 {
		return fault.New(fault.Malformed, "Parameter query is there %d times; one is expected", n)
	}
	return h.changes.DeleteMatching(c.Request().Context(), q.Text("query"))
}
