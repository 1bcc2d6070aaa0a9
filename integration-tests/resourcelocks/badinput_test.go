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
		`SELECT (SELECT count(*) FROM resource_locks.lock),
		        (SELECT count(*) FROM resource_locks.claim WHERE number > 0)`).Scan(&locks, &claims)
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
		{name: "no resource", method: "Lock", request: `{"ttlInSeconds": 5}`, code: codes.InvalidArgument},
		{
			name: "no type", method: "Lock", request: `{"resource": {"key": "k", "owner": "o"}, "ttlInSeconds": 5}`,
			code: codes.NotFound,
		},
		{
			name: "an unknown type", method: "Lock",
			request: `{"resource": {"key": "k", "owner": "o", "typeCode": 9}, "ttlInSeconds": 5}`, code: codes.NotFound,
		},
		{
			name: "no TTL", method: "Lock", request: `{"resource": {"key": "k", "owner": "o", "typeCode": 1}}`,
			code: codes.InvalidArgument,
		},
		{
			name: "a negative TTL", method: "Lock",
			request: `{"resource": {"key": "k", "owner": "o", "typeCode": 1}, "ttlInSeconds": -1}`, code: codes.InvalidArgument,
		},
		{
			name: "no owner", method: "Lock", request: `{"resource": {"key": "k", "typeCode": 1}, "ttlInSeconds": 5}`,
			code: codes.InvalidArgument,
		},
		{
			name: "a NUL in the key", method: "Lock",
			request: `{"resource": {"key": "` + nul + `", "owner": "o", "typeCode": 1}, "ttlInSeconds": 5}`,
			code:    codes.InvalidArgument,
		},
		{
			name: "a long key", method: "Lock",
			request: `{"resource": {"key": "` + long + `", "owner": "o", "typeCode": 1}, "ttlInSeconds": 5}`,
			code:    codes.InvalidArgument,
		},
		{
			name: "a message that is too large", method: "Lock",
			request: `{"resource": {"key": "k", "owner": "o", "typeCode": 1, "value": "` + strings.Repeat("x", 5<<20) +
				`"}, "ttlInSeconds": 5}`, code: codes.ResourceExhausted,
		},
		{name: "a release of nothing", method: "Release", request: `{}`, code: codes.InvalidArgument},
		{name: "a free key", method: "Fetch", request: `{"key": "free"}`, code: codes.NotFound},
		{name: "a list of no type", method: "FetchAll", request: `{}`, code: codes.NotFound},
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
		{
			"too many resources",
			`{"action": "lock", "resources": [` + strings.Repeat(`{"type": "read"},`, 1000) + `{"type": "read"}]}`,
		},
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
		{
			front: "sunbird", name: "no user", request: create, body: sunbirdRequest("k", "ann"), header: ann[2:],
			status: http.StatusUnauthorized,
		},
		{
			front: "sunbird", name: "no device", request: create, body: sunbirdRequest("k", "ann"), header: ann[:2],
			status: http.StatusBadRequest,
		},
		{
			front: "sunbird", name: "no JSON", request: create, body: `{"request": `, header: ann, status: http.StatusBadRequest,
		},
		{
			front: "sunbird", name: "half of a surrogate pair", request: create,
			body: strings.Replace(sunbirdRequest("k", "ann"), `"k"`, `"`+halfPair+`"`, 1), header: ann,
			status: http.StatusBadRequest,
		},
		{
			front: "sunbird", name: "a NUL in the id", request: create,
			body: strings.Replace(sunbirdRequest("k", "ann"), `"k"`, `"`+nul+`"`, 1), header: ann, status: http.StatusBadRequest,
		},
		{
			front: "sunbird", name: "a long id", request: create, body: sunbirdRequest(long, "ann"), header: ann,
			status: http.StatusBadRequest,
		},
		{front: "sunbird", name: "no request", request: create, body: `{}`, header: ann, status: http.StatusBadRequest},
		{
			front: "sunbird", name: "another user's lock", request: create, body: sunbirdRequest("k", "bob"), header: ann,
			status: http.StatusForbidden,
		},
		{
			front: "sunbird", name: "an unknown type", request: create,
			body: strings.Replace(sunbirdRequest("k", "ann"), "Content", "Shelf", 1), header: ann,
			status: http.StatusPreconditionFailed,
		},
		{
			front: "sunbird", name: "a body that is too large", request: create,
			body: sunbirdRequest(strings.Repeat("x", 2<<20), "ann"), header: ann, status: http.StatusBadRequest,
		},
		{
			front: "sunbird", name: "an unknown lock", request: "PATCH /v1/lock/refresh",
			body: strings.Replace(sunbirdRequest("k", "ann"), `{"createdBy"`, `{"lockId":"1","createdBy"`, 1), header: ann,
			status: http.StatusUnprocessableEntity,
		},
		{
			front: "sunbird", name: "a free resource", request: "DELETE /v1/lock/retire", body: sunbirdRequest("k", "ann"),
			header: ann, status: http.StatusBadRequest,
		},
		{
			front: "sunbird", name: "an unknown route", request: "POST /v1/lock/steal", body: `{}`, header: ann,
			status: http.StatusNotFound,
		},
		{
			front: "mutex", name: "no user", request: "POST /api/lock/k/", body: "", header: nil,
			status: http.StatusUnauthorized,
		},
		{
			front: "mutex", name: "two users", request: "POST /api/lock/k/", body: "", header: append(user, "X-User-Id", "8"),
			status: http.StatusBadRequest,
		},
		{
			front: "mutex", name: "a long user", request: "POST /api/lock/k/", body: "", header: []string{"X-User-Id", long},
			status: http.StatusBadRequest,
		},
		{front: "mutex", name: "no uid", request: "POST /api/lock//", body: "", header: user, status: http.StatusNotFound},
		{
			front: "mutex", name: "a NUL in the uid", request: "POST /api/lock/%00/", body: "", header: user,
			status: http.StatusBadRequest,
		},
		{
			front: "mutex", name: "a uid that is no UTF-8", request: "POST /api/lock/%ff/", body: "", header: user,
			status: http.StatusBadRequest,
		},
		{
			front: "mutex", name: "a long uid", request: "POST /api/lock/" + long + "/", body: "", header: user,
			status: http.StatusBadRequest,
		},
		{
			front: "mutex", name: "an unknown method", request: "PUT /api/lock/k/", body: "", header: user,
			status: http.StatusMethodNotAllowed,
		},
		{
			front: "mutex", name: "a free uid", request: "GET /api/lock/free/", body: "", header: user,
			status: http.StatusNotFound,
		},
		{front: "locktopus", name: "no namespace", request: "GET /v1", body: "", header: nil, status: http.StatusBadRequest},
		{
			front: "locktopus", name: "a negative abandon time-out", request: "GET /v1?namespace=x&abandon-timeout-ms=-1",
			body: "", header: nil, status: http.StatusBadRequest,
		},
		{
			front: "locktopus", name: "no web socket", request: "GET /v1?namespace=x", body: "", header: nil,
			status: http.StatusBadRequest,
		},
		{
			front: "locktopus", name: "an unknown namespace", request: "GET /stats_v1?namespace=x", body: "", header: nil,
			status: http.StatusNotFound,
		},
	} {
		method, path, _ := strings.Cut(tt.request, " ")
		got, body, err := call(t.Context(), method, at[tt.front]+path, tt.body, tt.header...)
		if err != nil || got != tt.status || body == "" {
			t.Errorf("%s, %s: got %d %.200q, %v, want %d with a text", tt.front, tt.name, got, body, err, tt.status)
		}
	}
}
