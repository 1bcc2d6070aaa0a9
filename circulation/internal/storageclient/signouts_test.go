package storageclient

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
)

func TestClient_SignsOut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		status  int // of the entry that is made
		code    fault.Code
		deleted int // status of the entry that is over
		fails   bool
	}{
		{name: "a session", status: 204, deleted: 204},
		{name: "a session that has ended already", status: 403, code: fault.Forbidden, deleted: 204},
		{name: "beside another sign-out", status: 204, deleted: 404},
		{name: "while storage is away", status: 503, code: fault.Unavailable, fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			session, until := uuid.New(), time.Date(2099, 1, 2, 3, 4, 5, 0, time.UTC)
			var made, deleted []string
			c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
				switch r.Method {
				case http.MethodPost:
					body, _ := io.ReadAll(r.Body)
					made = append(made, string(body))
					answer(w, tt.status, tt.code, "{}")
				case http.MethodDelete:
					deleted = append(deleted, r.URL.Path)
					answer(w, tt.deleted, map[bool]fault.Code{true: fault.NotFound}[tt.deleted == 404], "")
				default:
					if q := r.URL.Query().Get("query"); q != `scope=="circulation.staff-sign-outs"` {
						t.Errorf("asked for %s", q)
					}
					answer(w, 200, "", `{"items":[{"id":"`+someID+`","value":"2020-01-01T00:00:00Z"},`+
						`{"id":"`+anotherID+`","value":"2099-01-01T00:00:00Z"}]}`)
				}
			})
			err := c.SignOut(inTenant(t, "diku"), session, until)
			if (err != nil) != tt.fails {
				t.Fatalf("got %v", err)
			}
			want := `{"id":"` + session.String() + `","scope":"circulation.staff-sign-outs","key":"` + session.String() +
				`","value":"2099-01-02T03:04:05Z"}`
			if len(made) != 1 || made[0] != want {
				t.Errorf("made %q, want %q", made, want)
			}
			if !tt.fails && (len(deleted) != 1 || deleted[0] != "/settings/entries/"+someID) {
				t.Errorf("deleted %q, want the entry that is over", deleted)
			}
		})
	}
}

func TestClient_IsSignedOut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		code   fault.Code
		ended  bool
		fails  bool
	}{
		{status: 200, ended: true},
		{status: 404, code: fault.NotFound},
		{status: 404, code: fault.UnknownTenant, fails: true},
		{status: 503, code: fault.Unavailable, fails: true},
	} {
		c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, tt.status, tt.code, "{}") })
		ended, err := c.IsSignedOut(inTenant(t, "diku"), uuid.New())
		if ended != tt.ended || (err != nil) != tt.fails {
			t.Errorf("%d %s: got %t, %v", tt.status, tt.code, ended, err)
		}
	}
}
