package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/web"
)

// RequestQueueRoutes are the all-or-nothing changes of requests that were placed (all ours).
func RequestQueueRoutes(store commit.QueueStore) []web.Route {
	return []web.Route{
		{
			Method: http.MethodPost, Path: "/request-storage/changes", Permission: "circulation-storage.request-changes.item.post",
			Body: web.Schema("request-change"),
			Endpoint: web.Empty(http.StatusNoContent, func(c echo.Context) error {
				body, err := web.ReadBody(c)
				if err != nil {
					return err
				}
				change, err := commit.ParseRequestChange(body)
				if err != nil {
					return err
				}
				return store.ChangeRequest(c.Request().Context(), change)
			}),
		},
	}
}
