package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

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
		{
			Method: http.MethodPost, Path: path, Permission: "circulation.requests.item.post",
			Body: web.Schema("request"), Endpoint: web.JSON(http.StatusCreated, h.create).Of("request"),
		},
		{
			Method: http.MethodGet, Path: path, Permission: "circulation.requests.collection.get",
			Query: web.FolioPage(), Endpoint: web.JSON(http.StatusOK, h.list),
		},
		{
			Method: http.MethodGet, Path: path + "/:id", Permission: "circulation.requests.item.get",
			Endpoint: web.JSON(http.StatusOK, h.get).Of("request"),
		},
		{
			Method: http.MethodGet, Path: path + "/queue/item/:id", Permission: "circulation.requests.queue-item.collection.get",
			Endpoint: web.JSON(http.StatusOK, readQueue(q.ItemQueue)),
		},
		{
			Method: http.MethodGet, Path: path + "/queue/instance/:id", Permission: "circulation.requests.queue-instance.collection.get",
			Endpoint: web.JSON(http.StatusOK, readQueue(q.TitleQueue)),
		},
	}
}

func (h requestHandlers) create(c echo.Context) (json.RawMessage, error) {
	body, err := web.ReadUnique(c)
	if err != nil {
		return nil, err
	}
	request, err := h.placing.Create(c.Request().Context(), body)
	if err != nil {
		return nil, err
	}
	id, err := readID(request)
	if err != nil {
		return nil, fmt.Errorf("the request was placed, but storage's answer cannot be read: %w", err)
	}
	c.Response().Header().Set(echo.HeaderLocation, "/circulation/requests/"+id)
	return request, nil
}

// requestPage is a list of requests.
type requestPage struct {
	Requests     []json.RawMessage `json:"requests"`
	TotalRecords int               `json:"totalRecords"`
}

// list handles GET /circulation/requests. Query, offset and limit mean what they
// mean to storage.
func (h requestHandlers) list(c echo.Context) (requestPage, error) {
	found, total, err := listPage(c, h.queues.Requests)
	return requestPage{Requests: found, TotalRecords: total}, err
}

func (h requestHandlers) get(c echo.Context) (json.RawMessage, error) {
	id, err := readPathID(c, "request")
	if err != nil {
		return nil, err
	}
	request, err := h.queues.Request(c.Request().Context(), id)
	if fault.Is(err, fault.NotFound) {
		return nil, fault.Wrap(err, fault.NotFound, "There is no request with the id %s", id)
	}
	return request, err
}

// readQueue handles GET /circulation/requests/queue/{item,instance}/{id}: all open
// requests. What does not exist has none.
func readQueue(read func(context.Context, string) ([]json.RawMessage, error)) func(echo.Context) (requestPage, error) {
	return func(c echo.Context) (requestPage, error) {
		id, err := readPathID(c, "item or instance")
		if err != nil {
			return requestPage{}, err
		}
		queue, err := read(c.Request().Context(), id)
		if queue == nil {
			queue = []json.RawMessage{}
		}
		return requestPage{Requests: queue, TotalRecords: len(queue)}, err
	}
}
