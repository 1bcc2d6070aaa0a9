package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
)

const sessionsPath = "/patron-action-session-storage/expired-session-patron-ids"

// newSessions has a user who borrowed at 8 and 10 and returned at 9, and one who borrowed at 9:15.
func newSessions(t *testing.T) recordAPI {
	t.Helper()
	db, id := pgtest.New(t)
	store := postgres.NewRecordStore(db, func() {})
	a := recordAPI{newAPI(t, slices.Concat(httpapi.RecordRoutes(store), httpapi.SessionRoutes(store))), id}
	for i, s := range []struct{ patron, action, at string }{
		{
			patron: userID, action: "Check-out", at: "08:00",
		}, {
			patron: userID, action: "Check-out", at: "10:00",
		}, {patron: userID, action: "Check-in", at: "09:00"}, {patron: groupID, action: "Check-out", at: "09:15"},
	} {
		commitAPI{t: t, db: db, id: id}.add(`INSERT INTO S.patron_action_session (id, jsonb) VALUES (gen_random_uuid(),
			jsonb_build_object(
			'patronId', $1::text, 'loanId', $2::text, 'actionType', $3::text, 'metadata', jsonb_build_object('createdDate',
			$4::text)))`,
			s.patron, holdID(i), s.action, "2026-03-01T"+s.at+":00.000+00:00")
	}
	return a
}

func TestSessionRoutes_FindExpiredSessions(t *testing.T) {
	t.Parallel()
	a := newSessions(t)
	const borrowed, returned, other = userID + " Check-out", userID + " Check-in", groupID + " Check-out"
	for _, tt := range []struct {
		name, query string
		want        []string
	}{
		{name: "none yet", query: "session_inactivity_time_limit=2026-03-01T08:30:00.000Z", want: nil},
		{
			name: "the last record counts", query: "action_type=&session_inactivity_time_limit=2026-03-01T09:30:00Z",
			want: []string{returned, other},
		},
		{
			name: "all, the oldest first", query: "session_inactivity_time_limit=2026-03-01T10:30:00.123456789Z",
			want: []string{returned, other, borrowed},
		},
		{
			name: "of one type", query: "action_type=Check-out&session_inactivity_time_limit=2026-03-01T10:30:00Z&limit=100",
			want: []string{other, borrowed},
		},
		{
			name: "no more than asked for", query: "session_inactivity_time_limit=2026-03-01T10:30:00Z&limit=2",
			want: []string{returned, other},
		},
		{name: "an offset", query: "session_inactivity_time_limit=2026-03-01T10:30:00%2B02:00", want: nil},
	} {
		body := parseJSON(t, a.must(t, http.MethodGet, sessionsPath+"?"+tt.query, "", http.StatusOK).Body.String())
		var got []string
		for _, s := range body["expiredSessions"].([]any) {
			session := s.(map[string]any)
			got = append(got, fmt.Sprint(session["patronId"], " ", session["actionType"]))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	for query, want := range map[string]string{
		"action_type=Wrong&session_inactivity_time_limit=2026-03-01T10:30:00Z": `"message":"Invalid action type value"`,
		"session_inactivity_time_limit=soon":                                   `"message":"Date cannot be parsed"`,
		"action_type=Check-in":                                                 `"message":"Date cannot be parsed"`,
	} {
		wantRefusal(t, a.do(http.MethodGet, sessionsPath+"?"+query, ""), http.StatusUnprocessableEntity, want)
	}
	wantRefusal(t, a.do(http.MethodGet, sessionsPath+"?limit=-1", ""), http.StatusBadRequest, "allowed are integers")
	if w := a.do(http.MethodGet, strings.Replace(sessionsPath, "ids", "id", 1), ""); w.Code != http.StatusNotFound {
		t.Errorf("got %d for another path", w.Code)
	}
}
