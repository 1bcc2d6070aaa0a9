package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// Placing places requests.
type Placing interface {
	// Create returns the request as stored.
	Create(ctx context.Context, body []byte) (json.RawMessage, error)
}

// Queues reads stored requests.
type Queues interface {
	// Request returns a request. Fault: NotFound.
	Request(ctx context.Context, id string) (json.RawMessage, error)
	// Requests returns a page of the requests that match a CQL query ("" is all),
	// and how many match in all. Fault: Malformed for bad CQL.
	Requests(ctx context.Context, query string, offset, limit int) (requests []json.RawMessage, total int, err error)
	// ItemQueue and TitleQueue return the open requests of an item, and those of an
	// instance and its items, in the order of their positions.
	ItemQueue(ctx context.Context, itemID string) ([]json.RawMessage, error)
	TitleQueue(ctx context.Context, instanceID string) ([]json.RawMessage, error)
}

type requestHandlers struct {
	placing Placing
	queues  Queues
}

// requestRoutes are FOLIO's (mod-circulation, interface circulation), as far as
// check-outs and check-ins need them.
func requestRoutes(p Placing, q Queues) []web.Route {
	const path = "/circulation/requests"
	h := requestHandlers{p, q}
	return []web.Route{
		{Method: http.MethodPost, Path: path, Handler: h.create, Permission: "circulation.requests.item.post"},
		{Method: http.MethodGet, Path: path, Handler: h.list, Permission: "circulation.requests.collection.get"},
		{Method: http.MethodGet, Path: path + "/:id", Handler: h.get, Permission: "circulation.requests.item.get"},
		{Method: http.MethodGet, Path: path + "/queue/item/:id", Handler: h.queueOf(q.ItemQueue), Permission: "circulation.requests.queue-item.collection.get"},
		{Method: http.MethodGet, Path: path + "/queue/instance/:id", Handler: h.queueOf(q.TitleQueue), Permission: "circulation.requests.queue-instance.collection.get"},
	}
}

// create handles POST /circulation/requests: 201 with the request.
func (h requestHandlers) create(c echo.Context) error {
	body, err := web.ReadUnique(c)
	if err != nil {
		return err
	}
	request, err := h.placing.Create(c.Request().Context(), body)
	if err != nil {
		return err
	}
	var stored struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(request, &stored); err != nil {
		return fmt.Errorf("the request was placed, but storage's answer cannot be read: %w", err)
	}
	c.Response().Header().Set(echo.HeaderLocation, "/circulation/requests/"+stored.ID)
	return c.JSON(http.StatusCreated, request)
}

// requestPage is a list of requests.
type requestPage struct {
	Requests     []json.RawMessage `json:"requests"`
	TotalRecords int               `json:"totalRecords"`
}

// list handles GET /circulation/requests. Query, offset and limit mean what they
// mean to storage.
func (h requestHandlers) list(c echo.Context) error {
	found, total, err := listPage(c, func(offset, limit int) ([]json.RawMessage, int, error) {
		return h.queues.Requests(c.Request().Context(), c.QueryParam("query"), offset, limit)
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, requestPage{Requests: found, TotalRecords: total})
}

// get handles GET /circulation/requests/{id}.
func (h requestHandlers) get(c echo.Context) error {
	id, err := pathID(c, "request")
	if err != nil {
		return err
	}
	request, err := h.queues.Request(c.Request().Context(), id)
	if fault.Is(err, fault.NotFound) {
		return fault.Wrap(err, fault.NotFound, "There is no request with the id %s", id)
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, request)
}

// queueOf handles GET /circulation/requests/queue/{item,instance}/{id}: all open
// requests. What does not exist has none.
func (h requestHandlers) queueOf(read func(context.Context, string) ([]json.RawMessage, error)) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := pathID(c, "item or instance")
		if err != nil {
			return err
		}
		queue, err := read(c.Request().Context(), id)
		if err != nil {
			return err
		}
		if queue == nil {
			queue = []json.RawMessage{}
		}
		return c.JSON(http.StatusOK, requestPage{Requests: queue, TotalRecords: len(queue)})
	}
}

// pathID is the path's id in lower case. It must be a UUID in its usual form.
func pathID(c echo.Context, of string) (string, error) {
	id := c.Param("id")
	if !schemas.IsUUID(id) {
		return "", fault.New(fault.Malformed, "The id of the %s must be a UUID, not %.100q", of, id)
	}
	return strings.ToLower(id), nil
}
