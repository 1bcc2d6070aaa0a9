package httpapi

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// expiredAtOnce is of how many queues one call closes expired requests.
const expiredAtOnce = 500

// RequestQueueRoutes are the all-or-nothing changes of requests that were placed (ours), and FOLIO's
// timers that close expired requests and renumber queues.
func RequestQueueRoutes(store commit.Store) []web.Route {
	return []web.Route{
		{
			Method: http.MethodPost, Path: "/request-storage/changes", Permission: "circulation-storage.request-changes.item.post", Refusals: []fault.Code{fault.NotFound, fault.RequestChanged},
			Body: web.Schema("request-change"), Endpoint: web.Empty(http.StatusNoContent, writeParsed(commit.ParseRequestChange, store.ChangeRequest)),
		},
		{
			Method: http.MethodPost, Path: "/request-storage/moves", Permission: "circulation-storage.request-moves.item.post", Refusals: append([]fault.Code{fault.NotFound}, othersChanged...),
			Body: web.Schema("request-move"), Endpoint: web.JSON(http.StatusOK, fromParsed(commit.ParseRequestMove, store.MoveRequest)),
		},
		{
			Method: http.MethodPost, Path: "/request-storage/queue-orders", Permission: "circulation-storage.request-queue-orders.item.post", Refusals: []fault.Code{fault.NotFound, fault.RequestChanged},
			Body: web.Schema("queue-order"), Endpoint: web.JSON(http.StatusOK, fromParsed(commit.ParseQueueOrder, store.OrderQueue)),
		},
		{
			Method: http.MethodPost, Path: "/scheduled-request-expiration", Interface: "_timer 1.0", Every: 2 * time.Minute,
			Endpoint: web.Empty(http.StatusNoContent, func(c echo.Context) error {
				_, err := store.ExpireRequests(c.Request().Context(), expiredAtOnce)
				return err
			}),
		},
		{
			Method: http.MethodPost, Path: "/tlr-feature-toggle-job/start", Interface: "_timer 1.0", Every: 5 * time.Minute,
			Endpoint: web.Empty(http.StatusAccepted, func(c echo.Context) error { return store.RunTitleJob(c.Request().Context()) }),
		},
	}
}
