package httpapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/related"
	"checkoutlock/circulation/internal/requests"
	"checkoutlock/circulation/internal/requestview"
	"checkoutlock/web"
)

// Placing places requests.
type Placing interface {
	// Create returns the request as stored.
	Create(ctx context.Context, body []byte) (json.RawMessage, error)
	// AllowedPoints lists pickup locations by type of request. Faults: Malformed, Invalid.
	AllowedPoints(ctx context.Context, q requests.AllowedQuestion) (map[string][]requests.AllowedPoint, error)
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
	changes RequestChanges
	records related.Records
	log     *slog.Logger
}

// requestRoutes are FOLIO's (mod-circulation, interface circulation), as far as
// check-outs and check-ins need them.
func requestRoutes(o Options) []web.Route {
	const path = "/circulation/requests"
	h := requestHandlers{placing: o.Placing, queues: o.Queues, records: o.Loans, log: o.Log}
	return []web.Route{
		{
			Method: http.MethodPost, Path: path, Permission: "circulation.requests.item.post", Refusals: changed, Desired: []string{library.PatronBlock.Permission},
			Body: web.Schema("new-request"), Endpoint: web.JSON(http.StatusCreated, h.create).Of("request-view").With(web.Location),
		},
		{
			Method: http.MethodGet, Path: path, Permission: "circulation.requests.collection.get", Refusals: tooLong,
			Query: web.FolioPage(), Endpoint: web.JSON(http.StatusOK, h.list),
		},
		{
			Method: http.MethodGet, Path: path + "/allowed-service-points", Permission: "circulation.requests.allowed-service-points.get", Interface: "allowed-service-points 1.2", Refusals: tooLong,
			Query: web.Query{Parameters: allowedParameters, Refuse: web.RefuseAsFolio}, Endpoint: web.JSON(http.StatusOK, h.listAllowed),
		},
		{
			Method: http.MethodGet, Path: path + "/:id", Permission: "circulation.requests.item.get",
			Endpoint: web.JSON(http.StatusOK, h.get).Of("request-view"),
		},
		{
			Method: http.MethodGet, Path: path + "/queue/item/:id", Permission: "circulation.requests.queue-item.collection.get", Refusals: tooLong,
			Endpoint: web.JSON(http.StatusOK, h.readQueue(h.queues.ItemQueue)),
		},
		{
			Method: http.MethodGet, Path: path + "/queue/instance/:id", Permission: "circulation.requests.queue-instance.collection.get", Refusals: tooLong,
			Endpoint: web.JSON(http.StatusOK, h.readQueue(h.queues.TitleQueue)),
		},
	}
}

func (h requestHandlers) create(c echo.Context) (json.RawMessage, error) {
	request, err := storeBody(c, "/circulation/requests", h.placing.Create)
	if err != nil {
		return nil, err
	}
	return h.describe(c.Request().Context(), request), nil
}

// describe returns a request that was written as clients get it. If the records around it cannot be
// read, they are left out.
func (h requestHandlers) describe(ctx context.Context, request json.RawMessage) json.RawMessage {
	view, err := requestview.RenderOne(ctx, h.records, request)
	if err != nil {
		h.log.WarnContext(ctx, "the request was written, but cannot be described in full", "err", err)
		return request
	}
	return view
}

type requestPage struct {
	Requests     []json.RawMessage `json:"requests"`
	TotalRecords int               `json:"totalRecords"`
}

// list handles GET /circulation/requests. Query, offset and limit mean what they
// mean to storage.
func (h requestHandlers) list(c echo.Context) (requestPage, error) {
	found, total, err := listPage(c, h.queues.Requests)
	if err != nil {
		return requestPage{}, err
	}
	views, err := requestview.RenderPage(c.Request().Context(), h.records, found)
	return requestPage{Requests: views, TotalRecords: total}, err
}

var allowedParameters = []web.Parameter{
	{Name: "operation", Meaning: "create, replace or move"},
	{Name: "requesterId", Meaning: "the patron of a new request"},
	{Name: "patronGroupId", Meaning: "the group in place of the patron"},
	{Name: "instanceId", Meaning: "the title that is requested"},
	{Name: "itemId", Meaning: "the item that is requested, or to which the request is moved"},
	{Name: "requestId", Meaning: "the request that is edited or moved"},
}

// listAllowed handles GET /circulation/requests/allowed-service-points.
func (h requestHandlers) listAllowed(c echo.Context) (map[string][]requests.AllowedPoint, error) {
	return h.placing.AllowedPoints(c.Request().Context(), requests.AllowedQuestion{
		Operation: c.QueryParam("operation"), RequesterID: c.QueryParam("requesterId"), PatronGroupID: c.QueryParam("patronGroupId"),
		InstanceID: c.QueryParam("instanceId"), ItemID: c.QueryParam("itemId"), RequestID: c.QueryParam("requestId"),
	})
}

func (h requestHandlers) get(c echo.Context) (json.RawMessage, error) {
	id, err := readPathID(c, "request")
	if err != nil {
		return nil, err
	}
	ctx := c.Request().Context()
	request, err := h.queues.Request(ctx, id)
	if err != nil {
		return nil, explainMissing(err, "request", id)
	}
	return requestview.RenderOne(ctx, h.records, request)
}

// readQueue handles GET /circulation/requests/queue/{item,instance}/{id}: all open
// requests. What does not exist has none.
func (h requestHandlers) readQueue(read func(context.Context, string) ([]json.RawMessage, error)) func(echo.Context) (requestPage, error) {
	return func(c echo.Context) (requestPage, error) {
		id, err := readPathID(c, "item or instance")
		if err != nil {
			return requestPage{}, err
		}
		ctx := c.Request().Context()
		queue, err := read(ctx, id)
		if err != nil {
			return requestPage{}, err
		}
		views, err := requestview.RenderPage(ctx, h.records, queue)
		return requestPage{Requests: views, TotalRecords: len(views)}, err
	}
}
