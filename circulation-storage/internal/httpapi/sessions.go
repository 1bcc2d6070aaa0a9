package httpapi

import (
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
	"checkoutlock/web"
)

type expiredSessions struct {
	ExpiredSessions []records.Session `json:"expiredSessions"`
}

type sessionHandlers struct{ store records.Store }

// SessionRoutes are FOLIO's question for sessions that a desk left open.
func SessionRoutes(store records.Store) []web.Route {
	h := sessionHandlers{store: store}
	return []web.Route{{
		Method: http.MethodGet, Path: "/patron-action-session-storage/expired-session-patron-ids",
		Permission: "patron-action-session-storage.expired-session-patron-ids.collection.get", Interface: records.PatronActionSession.Interface,
		Refusals: []fault.Code{fault.Invalid},
		Query: web.Query{Refuse: web.RefuseAsFolio, Parameters: []web.Parameter{
			{Name: "action_type", Meaning: "Check-out or Check-in; both without it"},
			{Name: "session_inactivity_time_limit", Meaning: "sessions without a record since then are expired"},
			web.Limit(defaultExpiredSessions, 0, math.MaxInt32),
		}},
		Endpoint: web.JSON(http.StatusOK, h.list),
	}}
}

const (
	defaultExpiredSessions = 10
	// maxExpiredSessions bounds the answer. The next question finds the rest.
	maxExpiredSessions = 10000
)

// list handles GET …/expired-session-patron-ids: 200. It refuses parameters in
// mod-circulation-storage's words.
func (h sessionHandlers) list(c echo.Context) (expiredSessions, error) {
	q := web.QueryOf(c)
	actionType := strings.TrimSpace(q.Text("action_type"))
	if actionType != "" && !slices.Contains(records.ActionTypes(), actionType) {
		return expiredSessions{}, fault.StorageRefusal("Invalid action type value", fault.Param("action_type", fault.Shown(actionType)))
	}
	text := q.Text("session_inactivity_time_limit")
	before, err := jsonschema.ParseTime(text)
	if err != nil {
		return expiredSessions{}, fault.StorageRefusal("Date cannot be parsed", fault.Param("session_inactivity_time_limit", fault.Shown(text)))
	}
	found, err := h.store.ExpiredSessions(c.Request().Context(), actionType, before, min(q.Integer("limit"), maxExpiredSessions))
	return expiredSessions{ExpiredSessions: found}, err
}
