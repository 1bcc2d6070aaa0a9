package resourcelocks

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// nul and halfPair are texts that no store keeps, in JSON.
const (
	nul      = `\u0000`
	halfPair = `\ud800`
)

var long = strings.Repeat("x", 300)

func TestBadInput_ChangesNothing(t *testing.T) {
	t.Parallel()
	database := createDatabase(t)
	at := startInstance(t, database, "SUNBIRD_LOCK_TTL=1h", "MUTEX_TTL=1h") // no lock ends meanwhile
	var held []*hold
	for _, p := range protocols {
		h, err := p.acquire(t.Context(), at, "good-"+p.name, "owner")
		if err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		held = append(held, h)
	}
	waiter, err := connectLocktopus(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := waiter.send(t.Context(), lockMessage("good-locktopus")); err != nil || m.State != "enqueued" {
		t.Fatalf("got %+v, %v", m, err)
	}

	sendBadCalls(t, at)
	sendBadMessages(t, at)
	sendBadRequests(t, at)

	var locks, claims int
	err = openDatabase(t, database).QueryRow(t.Context(),
		`SELECT (SELECT count(*) FROM resource_locks.lock), (SELECT count(*) FROM resource_locks.claim WHERE number > 0)`).Scan(&locks, &claims)
	if err != nil || locks != 3 || claims != 2 {
		t.Errorf("%d locks and %d claims are stored, want 3 and 2: %v", locks, claims, err)
	}
	for i, h := range held {
		if err := h.release(t.Context()); err != nil {
			t.Errorf("%s: %v", protocols[i].name, err)
		}
	}
	if m, err := waiter.receive(t.Context()); err != nil || m.State != "acquired" {
		t.Errorf("the waiter got %+v, %v, want its grant", m, err)
	}
	waiter.leave()
}

func sendBadCalls(t *testing.T, at addresses) {
	t.Helper()
	for _, tt := range []struct {
		name, method, request string
		code                  codes.Code
	}{
		{"no resource", "Lock", `{"ttlInSeconds": 5}`, codes.InvalidArgument},
		{"no type", "Lock", `{"resource": {"key": "k", "owner": "o"}, "ttlInSeconds": 5}`, codes.NotFound},
		{"an unknown type", "Lock", `{"resource": {"key": "k", "owner": "o", "typeCode": 9}, "ttlInSeconds": 5}`, codes.NotFound},
		{"no TTL", "Lock", `{"resource": {"key": "k", "owner": "o", "typeCode": 1}}`, codes.InvalidArgument},
		{"a negative TTL", "Lock", `{"resource": {"key": "k", "owner": "o", "typeCode": 1}, "ttlInSeconds": -1}`, codes.InvalidArgument},
		{"no owner", "Lock", `{"resource": {"key": "k", "typeCode": 1}, "ttlInSeconds": 5}`, codes.InvalidArgument},
		{"a NUL in the key", "Lock", `{"resource": {"key": "` + nul + `", "owner": "o", "typeCode": 1}, "ttlInSeconds": 5}`, codes.InvalidArgument},
		{"a long key", "Lock", `{"resource": {"key": "` + long + `", "owner": "o", "typeCode": 1}, "ttlInSeconds": 5}`, codes.InvalidArgument},
		{
			"a message that is too large", "Lock",
			`{"resource": {"key": "k", "owner": "o", "typeCode": 1, "value": "` + strings.Repeat("x", 5<<20) + `"}, "ttlInSeconds": 5}`, codes.ResourceExhausted,
		},
		{"a release of nothing", "Release", `{}`, codes.InvalidArgument},
		{"a free key", "Fetch", `{"key": "free"}`, codes.NotFound},
		{"a list of no type", "FetchAll", `{}`, codes.NotFound},
	} {
		if err := callLocket(t.Context(), at, tt.method, tt.request); status.Code(err) != tt.code {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.code)
		}
	}
}

func sendBadMessages(t *testing.T, at addresses) {
	t.Helper()
	for _, tt := range []struct{ name, message string }{
		{"no JSON", `lock`},
		{"no object", `[]`},
		{"half of a surrogate pair", strings.Replace(lockMessage("k"), `"k"`, `"`+halfPair+`"`, 1)},
		{"an unknown action", `{"action": "steal"}`},
		{"a release without a lock", releaseMessage},
		{"no resources", `{"action": "lock"}`},
		{"an unknown type", `{"action": "lock", "resources": [{"type": "x", "path": ["k"]}]}`},
		{"no text in a path", `{"action": "lock", "resources": [{"type": "write", "path": [null]}]}`},
		{"a NUL in a path", `{"action": "lock", "resources": [{"type": "write", "path": ["` + nul + `"]}]}`},
		{"a long path", lockMessage(strings.Repeat("x", 5000))},
		{"too many resources", `{"action": "lock", "resources": [` + strings.Repeat(`{"type": "read"},`, 1000) + `{"type": "read"}]}`},
		{"a message that is too large", lockMessage(strings.Repeat("x", 300<<10))},
	} {
		text, code, err := readRefusal(t.Context(), at, tt.message)
		if err != nil || !strings.HasPrefix(text, "communication error: ") || code != 3000 {
			t.Errorf("%s: got %q and code %d, want an error and code 3000: %v", tt.name, text, code, err)
		}
	}
}

// readRefusal sends a message on a connection of its own and reads until its end.
func readRefusal(ctx context.Context, at addresses, message string) (text string, code int, err error) {
	conn, answer, err := websocket.DefaultDialer.DialContext(ctx, socketURL(at), nil)
	if err != nil {
		return "", 0, err
	}
	_ = answer.Body.Close()
	defer conn.Close()
	if err := conn.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
		return "", 0, err
	}
	for {
		_, frame, err := conn.ReadMessage()
		var closed *websocket.CloseError
		switch {
		case errors.As(err, &closed):
			return text, closed.Code, nil
		case err != nil:
			return text, 0, err
		}
		text += string(frame)
	}
}

func sendBadRequests(t *testing.T, at addresses) {
	t.Helper()
	const create = "POST /v1/lock/create"
	ann := []string{"X-Authenticated-Userid", "ann", "X-Device-Id", "desk"}
	user := []string{"X-User-Id", "7"}
	for _, tt := range []struct {
		front, name, request, body string
		header                     []string
		status                     int
	}{
		{"sunbird", "no user", create, sunbirdRequest("k", "ann"), ann[2:], http.StatusUnauthorized},
		{"sunbird", "no device", create, sunbirdRequest("k", "ann"), ann[:2], http.StatusBadRequest},
		{"sunbird", "no JSON", create, `{"request": `, ann, http.StatusBadRequest},
		{"sunbird", "half of a surrogate pair", create, strings.Replace(sunbirdRequest("k", "ann"), `"k"`, `"`+halfPair+`"`, 1), ann, http.StatusBadRequest},
		{"sunbird", "a NUL in the id", create, strings.Replace(sunbirdRequest("k", "ann"), `"k"`, `"`+nul+`"`, 1), ann, http.StatusBadRequest},
		{"sunbird", "a long id", create, sunbirdRequest(long, "ann"), ann, http.StatusBadRequest},
		{"sunbird", "no request", create, `{}`, ann, http.StatusBadRequest},
		{"sunbird", "another user's lock", create, sunbirdRequest("k", "bob"), ann, http.StatusForbidden},
		{"sunbird", "an unknown type", create, strings.Replace(sunbirdRequest("k", "ann"), "Content", "Shelf", 1), ann, http.StatusPreconditionFailed},
		{"sunbird", "a body that is too large", create, sunbirdRequest(strings.Repeat("x", 2<<20), "ann"), ann, http.StatusBadRequest},
		{
			"sunbird", "an unknown lock", "PATCH /v1/lock/refresh",
			strings.Replace(sunbirdRequest("k", "ann"), `{"createdBy"`, `{"lockId":"1","createdBy"`, 1), ann, http.StatusUnprocessableEntity,
		},
		{"sunbird", "a free resource", "DELETE /v1/lock/retire", sunbirdRequest("k", "ann"), ann, http.StatusBadRequest},
		{"sunbird", "an unknown route", "POST /v1/lock/steal", `{}`, ann, http.StatusNotFound},
		{"mutex", "no user", "POST /api/lock/k/", "", nil, http.StatusUnauthorized},
		{"mutex", "two users", "POST /api/lock/k/", "", append(user, "X-User-Id", "8"), http.StatusBadRequest},
		{"mutex", "a long user", "POST /api/lock/k/", "", []string{"X-User-Id", long}, http.StatusBadRequest},
		{"mutex", "no uid", "POST /api/lock//", "", user, http.StatusNotFound},
		{"mutex", "a NUL in the uid", "POST /api/lock/%00/", "", user, http.StatusBadRequest},
		{"mutex", "a uid that is no UTF-8", "POST /api/lock/%ff/", "", user, http.StatusBadRequest},
		{"mutex", "a long uid", "POST /api/lock/" + long + "/", "", user, http.StatusBadRequest},
		{"mutex", "an unknown method", "PUT /api/lock/k/", "", user, http.StatusMethodNotAllowed},
		{"mutex", "a free uid", "GET /api/lock/free/", "", user, http.StatusNotFound},
		{"locktopus", "no namespace", "GET /v1", "", nil, http.StatusBadRequest},
		{"locktopus", "a negative abandon time-out", "GET /v1?namespace=x&abandon-timeout-ms=-1", "", nil, http.StatusBadRequest},
		{"locktopus", "no web socket", "GET /v1?namespace=x", "", nil, http.StatusBadRequest},
		{"locktopus", "an unknown namespace", "GET /stats_v1?namespace=x", "", nil, http.StatusNotFound},
	} {
		method, path, _ := strings.Cut(tt.request, " ")
		got, body, err := call(t.Context(), method, at[tt.front]+path, tt.body, tt.header...)
		if err != nil || got != tt.status || body == "" {
			t.Errorf("%s, %s: got %d %.200q, %v, want %d with a text", tt.front, tt.name, got, body, err, tt.status)
		}
	}
}
