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

// requestChangeRoutes are FOLIO's (mod-circulation, interface circulation).
func (h circulation) requestChangeRoutes() []web.Route {
	const path = "/circulation/requests"
	return []web.Route{
		{
			Method: http.MethodPut, Path: path + "/:id", Permission: "circulation.requests.item.put", Desired: []string{library.PatronBlock.Permission},
			Body: web.Schema("request-view"), Endpoint: web.Empty(http.StatusNoContent, replaceByID("request", h.Requests.Edit)),
		},
		{
			Method: http.MethodDelete, Path: path + "/:id", Permission: "circulation.requests.item.delete",
			Endpoint: web.Empty(http.StatusNoContent, deleteByID("request", h.Requests.Delete)),
		},
		{
			Method: http.MethodDelete, Path: path, Permission: "circulation.requests.collection.delete",
			Query:    web.Query{Parameters: []web.Parameter{{Name: "query", Meaning: "CQL that the requests to delete match"}}},
			Endpoint: web.Empty(http.StatusNoContent, deleteMatching(h.Storage.DeleteRequests)),
		},
		{
			Method: http.MethodPost, Path: path + "/:id/move", Permission: "circulation.requests.item.move.post", Interface: "request-move 0.7",
			Body: requests.MoveRequest{}, Endpoint: web.JSON(http.StatusOK, h.moveRequest).Of("request-view"),
		},
		{
			Method: http.MethodPost, Path: path + "/queue/item/:id/reorder", Permission: "circulation.requests.queue.item-reorder.collection.post",
			Body: web.Schema("reordered-queue"), Endpoint: web.JSON(http.StatusOK, h.reorderQueue(false)),
		},
		{
			Method: http.MethodPost, Path: path + "/queue/instance/:id/reorder", Permission: "circulation.requests.queue.instance-reorder.collection.post",
			Body: web.Schema("reordered-queue"), Endpoint: web.JSON(http.StatusOK, h.reorderQueue(true)),
		},
	}
}

func (h circulation) moveRequest(c echo.Context) (json.RawMessage, error) {
	id, err := readPathID(c, "request")
	if err != nil {
		return nil, err
	}
	var m requests.MoveRequest
	if err := web.DecodeExact(c, &m); err != nil {
		return nil, err
	}
	moved, err := h.Requests.Move(c.Request().Context(), id, m)
	return h.describeRequest(c.Request().Context(), moved, err)
}

// reorderQueue answers the queue in its new order.
func (h circulation) reorderQueue(ofTitle bool) func(echo.Context) (requestPage, error) {
	return func(c echo.Context) (requestPage, error) {
		id, err := readPathID(c, queueOwner)
		if err != nil {
			return requestPage{}, err
		}
		body, err := web.ReadUnique(c)
		if err != nil {
			return requestPage{}, err
		}
		queue, err := h.Requests.Reorder(c.Request().Context(), id, ofTitle, body)
		if err != nil {
			return requestPage{}, err
		}
		return h.describeQueue(c.Request().Context(), queue), nil
	}
}

// describeQueue is describe for a queue that was written.
func (h circulation) describeQueue(ctx context.Context, queue []json.RawMessage) requestPage {
	views, err := requestview.RenderPage(ctx, h.Storage, queue)
	if err != nil {
		h.Log.WarnContext(ctx, "the queue was ordered, but cannot be described in full", "err", err)
		views = queue
	}
	return requestPage{Requests: views, TotalRecords: len(views)}
}
