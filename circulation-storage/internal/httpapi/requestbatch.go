package httpapi

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/web"
)

// RequestBatchStore writes requests of the tenant in ctx together.
type RequestBatchStore interface {
	// PutRequests replaces or creates all of them or none.
	PutRequests(ctx context.Context, requests []records.Record) error
}

type requestBatchHandlers struct{ store RequestBatchStore }

// RequestBatchRoutes are FOLIO's /request-storage-batch/requests, by which a queue
// is put into another order at once.
func RequestBatchRoutes(store RequestBatchStore) []web.Route {
	h := requestBatchHandlers{store: store}
	return []web.Route{{
		Method: http.MethodPost, Path: "/request-storage-batch/requests", Handler: h.post,
		Permission: "circulation-storage.request-batch.item.post",
	}}
}

// post handles POST /request-storage-batch/requests: 201 without a body.
func (h requestBatchHandlers) post(c echo.Context) error {
	body, err := web.ReadBody(c)
	if err != nil {
		return err
	}
	requests, err := records.ParseRequestBatch(body)
	if err != nil {
		return err
	}
	if err := h.store.PutRequests(c.Request().Context(), requests); err != nil {
		return err
	}
	return c.NoContent(http.StatusCreated)
}
