package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/requests"
	"checkoutlock/circulation/internal/requestview"
	"checkoutlock/web"
)

// Requests places requests, and changes those that were placed.
type Requests interface {
	// Create returns the request as stored.
	Create(ctx context.Context, body []byte) (json.RawMessage, error)
	// AllowedPoints lists pickup locations by type of request. Faults: Malformed, Invalid.
	AllowedPoints(ctx context.Context, q requests.AllowedQuestion) (map[string][]requests.AllowedPoint, error)
	// Edit replaces a request, or ends it. An unknown id places it.
	Edit(ctx context.Context, id string, body []byte) error
	// Delete removes a request. Fault: NotFound.
	Delete(ctx context.Context, id string) error
	// Move gives a request another item, and returns it as stored. Fault: NotFound.
	Move(ctx context.Context, id string, m requests.MoveRequest) (json.RawMessage, error)
	// Reorder puts the queue of an item or a title into another order, and returns it.
	Reorder(ctx context.Context, id string, ofTitle bool, body []byte) ([]json.RawMessage, error)
}

// requestRoutes are FOLIO's (mod-circulation, interface circulation), as far as
// check-outs and check-ins need them.
func (h circulation) requestRoutes() []web.Route {
	const path = "/circulation/requests"
	return []web.Route{
		{
			Method: http.MethodPost, Path: path, Permission: "circulation.requests.item.post", Refusals: changed, Desired: []string{library.PatronBlock.Permission},
			Body: web.Schema("new-request"), Endpoint: web.JSON(http.StatusCreated, h.createRequest).Of("request-view").With(web.Location),
		},
		{
			Method: http.MethodGet, Path: path, Permission: "circulation.requests.collection.get", Refusals: tooLong,
			Query: web.FolioPage(), Endpoint: web.JSON(http.StatusOK, h.listRequests),
		},
		{
			Method: http.MethodGet, Path: path + "/allowed-service-points", Permission: "circulation.requests.allowed-service-points.get", Interface: "allowed-service-points 1.2", Refusals: tooLong,
			Query: web.Query{Parameters: allowedParameters, Refuse: web.RefuseAsFolio}, Endpoint: web.JSON(http.StatusOK, h.listAllowedPoints),
		},
		{
			Method: http.MethodGet, Path: path + "/:id", Permission: "circulation.requests.item.get",
			Endpoint: web.JSON(http.StatusOK, fromPathID("request", h.getRequest)).Of("request-view"),
		},
		{
			Method: http.MethodGet, Path: path + "/queue/item/:id", Permission: "circulation.requests.queue-item.collection.get", Refusals: tooLong,
			Endpoint: web.JSON(http.StatusOK, h.readQueue(queueOwner, h.Storage.ItemQueue)),
		},
		{
			Method: http.MethodGet, Path: path + "/queue/instance/:id", Permission: "circulation.requests.queue-instance.collection.get", Refusals: tooLong,
			Endpoint: web.JSON(http.StatusOK, h.readQueue(queueOwner, h.Storage.TitleQueue)),
		},
	}
}

func (h circulation) createRequest(c echo.Context) (json.RawMessage, error) {
	request, err := storeBody(c, "/circulation/requests", h.Requests.Create)
	return h.describeRequest(c.Request().Context(), request, err)
}

// describeRequest returns a request that was written as clients get it. If the records around it cannot be
// read, they are left out.
func (h circulation) describeRequest(ctx context.Context, request json.RawMessage, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	view, err := requestview.RenderOne(ctx, h.Storage, request)
	if err != nil {
		h.Log.WarnContext(ctx, "the request was written, but cannot be described in full", "err", err)
		return request, nil
	}
	return view, nil
}

type requestPage struct {
	Requests     []json.RawMessage `json:"requests"`
	TotalRecords int               `json:"totalRecords"`
}

// listRequests handles GET /circulation/requests. Query, offset and limit mean what they
// mean to storage.
func (h circulation) listRequests(c echo.Context) (requestPage, error) {
	found, total, err := listPage(c, h.Storage.Requests)
	if err != nil {
		return requestPage{}, err
	}
	views, err := requestview.RenderPage(c.Request().Context(), h.Storage, found)
	return requestPage{Requests: views, TotalRecords: total}, err
}

// queueOwner is what has a queue, for refusals of ids.
const queueOwner = "item or instance"

var allowedParameters = []web.Parameter{
	{Name: "operation", Meaning: "create, replace or move"},
	{Name: "requesterId", Meaning: "the patron of a new request"},
	{Name: "patronGroupId", Meaning: "the group in place of the patron"},
	{Name: "instanceId", Meaning: "the title that is requested"},
	{Name: "itemId", Meaning: "the item that is requested, or to which the request is moved"},
	{Name: "requestId", Meaning: "the request that is edited or moved"},
}

// listAllowedPoints handles GET /circulation/requests/allowed-service-points.
func (h circulation) listAllowedPoints(c echo.Context) (map[string][]requests.AllowedPoint, error) {
	return h.Requests.AllowedPoints(c.Request().Context(), requests.AllowedQuestion{
		Operation: c.QueryParam("operation"), RequesterID: c.QueryParam("requesterId"), PatronGroupID: c.QueryParam("patronGroupId"),
		InstanceID: c.QueryParam("instanceId"), ItemID: c.QueryParam("itemId"), RequestID: c.QueryParam("requestId"),
	})
}

func (h circulation) getRequest(ctx context.Context, id string) (json.RawMessage, error) {
	request, err := h.Storage.Request(ctx, id)
	if err != nil {
		return nil, err
	}
	return requestview.RenderOne(ctx, h.Storage, request)
}

// readQueue handles GET of the requests of a record of a kind, such as
// /circulation/requests/queue/item/{id}: all of them. What does not exist has none.
func (h circulation) readQueue(kind string, read func(context.Context, string) ([]json.RawMessage, error)) func(echo.Context) (requestPage, error) {
	return fromPathID(kind, func(ctx context.Context, id string) (requestPage, error) {
		queue, err := read(ctx, id)
		if err != nil {
			return requestPage{}, err
		}
		views, err := requestview.RenderPage(ctx, h.Storage, queue)
		return requestPage{Requests: views, TotalRecords: len(views)}, err
	})
}
