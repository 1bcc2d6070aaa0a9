package sunbird

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/fault"
)

func TestServer_JudgesInOrder(t *testing.T) {
	t.Parallel()
	f := newHarness(t, nil)
	u := f.user("u1", "Ann", "d1")
	noDevice := u.on("")
	all := map[string]any{
		"lockId": none, "resourceId": "do_1", "resourceType": "content", "resourceInfo": "{}", "createdBy": "u1",
		"creatorInfo": "{}",
	}
	// with returns a message whose request has one other value; without returns one that
	// lacks it.
	with := func(name string, value any) string {
		request := map[string]any{}
		for k, v := range all {
			request[k] = v
		}
		request[name] = value
		return encodeRequest(request)
	}
	without := func(names ...string) string {
		request := map[string]any{}
		for k, v := range all {
			request[k] = v
		}
		for _, name := range names {
			delete(request, name)
		}
		return encodeRequest(request)
	}
	type row struct {
		name       string
		by         *user
		body       string
		status     int
		code, text string
	}
	operations := []struct {
		method, path, prefix string
		rows                 []row
	}{
		{method: "POST", path: "/v1/lock/create", prefix: "ERR_LOCK_CREATION", rows: []row{
			{
				name: "createdBy before the fields", by: u, body: without("createdBy", "resourceId"), status: 403, code: "_FAILED",
				text: "You are not authorized to lock this resource",
			},
			{
				name: "createdBy another", by: u, body: with("createdBy", "u2"), status: 403, code: "_FAILED",
				text: "You are not authorized to lock this resource",
			},
			{
				name: "createdBy a number", by: u, body: with("createdBy", 7), status: 403, code: "_FAILED",
				text: "You are not authorized to lock this resource",
			},
			{
				name: "no resourceInfo", by: u, body: without("resourceInfo", "creatorInfo"), status: 400, code: "_FIELDS_MISSING",
				text: `"resourceInfo" is required`,
			},
			{
				name: "no creatorInfo", by: u, body: without("creatorInfo"), status: 400, code: "_FIELDS_MISSING",
				text: `"creatorInfo" is required`,
			},
			{
				name: "resourceInfo an object", by: u, body: with("resourceInfo", map[string]any{}), status: 400,
				code: "_FIELDS_MISSING", text: `"resourceInfo" must be a string`,
			},
			{
				name: "too large a resourceInfo", by: u, body: with("resourceInfo", strings.Repeat("i", 70000)), status: 400,
				code: "_FIELDS_MISSING", text: "",
			},
		}},
		{method: "PATCH", path: "/v1/lock/refresh", prefix: "ERR_LOCK_REFRESHING", rows: []row{
			{
				name: "no lockId", by: u, body: without("lockId", "resourceId"), status: 400, code: "_FIELDS_MISSING",
				text: `"lockId" is required`,
			},
			{
				name: "an empty lockId", by: u, body: with("lockId", ""), status: 400, code: "_FIELDS_MISSING",
				text: `"lockId" is not allowed to be empty`,
			},
		}},
		{method: "DELETE", path: "/v1/lock/retire", prefix: "ERR_LOCK_RETIRING", rows: nil},
	}
	common := []row{
		{
			name: "no device", by: noDevice, body: `{}`, status: 400, code: "_FAILED", text: "X-device-Id is missing in headers",
		},
		{
			name: "a device without UTF-8", by: u.on("Ger\xe4t"), body: `{}`, status: 400, code: "_FAILED",
			text: "X-device-Id is not valid UTF-8",
		},
		{name: "no request", by: u, body: `{}`, status: 400, code: "_FIELDS_MISSING", text: "request is required"},
		{name: "no body", by: u, body: ``, status: 400, code: "_FIELDS_MISSING", text: "request is required"},
		{
			name: "a request that is null", by: u, body: `{"request":null}`, status: 400, code: "_FIELDS_MISSING",
			text: "request is required",
		},
		{
			name: "a request that is a list", by: u, body: `{"request":[]}`, status: 400, code: "_FIELDS_MISSING",
			text: `"request" must be an object`,
		},
		{name: "no JSON", by: u, body: `{"request":`, status: 400, code: "_FIELDS_MISSING", text: ""},
		{name: "no object", by: u, body: `[]`, status: 400, code: "_FIELDS_MISSING", text: "the body must be a JSON object"},
		{
			name: "half of a surrogate pair", by: u, body: `{"request":{"resourceId":"\ud800"}}`, status: 400,
			code: "_FIELDS_MISSING", text: "",
		},
		{
			name: "too large a body", by: u, body: `{"x":"` + strings.Repeat("x", maxBody) + `"}`, status: 400,
			code: "_FIELDS_MISSING", text: "the body has more than 1048576 bytes",
		},
		{
			name: "no resourceId", by: u, body: without("resourceId", "resourceType"), status: 400, code: "_FIELDS_MISSING",
			text: `"resourceId" is required`,
		},
		{
			name: "an empty resourceId", by: u, body: with("resourceId", ""), status: 400, code: "_FIELDS_MISSING",
			text: `"resourceId" is not allowed to be empty`,
		},
		{
			name: "resourceId a number", by: u, body: with("resourceId", 7), status: 400, code: "_FIELDS_MISSING",
			text: `"resourceId" must be a string`,
		},
		{
			name: "resourceId null", by: u, body: with("resourceId", nil), status: 400, code: "_FIELDS_MISSING",
			text: `"resourceId" must be a string`,
		},
		{
			name: "too long a resourceId", by: u, body: with("resourceId", strings.Repeat("r", 300)), status: 400,
			code: "_FIELDS_MISSING", text: "",
		},
		{
			name: "no resourceType", by: u, body: without("resourceType"), status: 400, code: "_FIELDS_MISSING",
			text: `"resourceType" is required`,
		},
		{
			name: "another resourceType", by: u, body: with("resourceType", "user"), status: 412, code: "_FAILED",
			text: "Resource type is not valid",
		},
	}
	for _, op := range operations {
		for _, r := range append(common, op.rows...) {
			t.Run(op.path+" "+r.name, func(t *testing.T) {
				f.call(op.method, op.path, r.body, r.by.headers()...).refused(t, r.status, op.prefix+r.code, r.text)
			})
		}
		f.call(op.method, op.path, `x`, deviceHeader, "").refused(t, 401, "ERR_TOKEN_FIELD_MISSING",
			"Required field token is missing")
	}
	if a := f.list(""); *a.Result.Count != 0 {
		t.Errorf("refused calls stored %s", a.text())
	}
}

func encodeRequest(request map[string]any) string {
	text, err := json.Marshal(map[string]any{"request": request})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestServer_BelievesTheGatewaysHeader(t *testing.T) {
	t.Parallel()
	f := newHarness(t, func(c *Settings) { c.Auth, c.Keys = AuthHeader, "" })
	create := body("resourceId", "do_1", "resourceType", "content", "resourceInfo", "{}", "createdBy", "u1", "creatorInfo",
		`{"name":"Ann"}`)
	key := f.call("POST", "/v1/lock/create", create, userHeader, "u1", deviceHeader, "d").wants(t,
		"api.lock.create").Result.LockKey
	f.call("POST", "/v1/lock/create", create, userHeader, "u2", deviceHeader, "d").refused(t, 403,
		"ERR_LOCK_CREATION_FAILED", "")
	f.call("POST", "/v1/lock/create", create, deviceHeader, "d").refused(t, 401, "ERR_TOKEN_FIELD_MISSING", "")
	f.store.Advance(time.Hour)
	f.call("PATCH", "/v1/lock/refresh", body("lockId", key, "resourceId", "do_1", "resourceType", "content"), userHeader,
		"u1", deviceHeader, "d").
		wants(t, "api.lock.refresh")
	if entry := f.list("").Result.Data[0]; entry["creatorInfo"] != `{"name":"Ann"}` {
		t.Errorf("a resumed lock has lost its name: %v", entry)
	}
}

// TestServer_RefusesAUserHeaderWithTwoValues is for gateways that add their value behind a caller's.
func TestServer_RefusesAUserHeaderWithTwoValues(t *testing.T) {
	t.Parallel()
	f := newHarness(t, func(c *Settings) { c.Auth, c.Keys = AuthHeader, "" })
	for value, status := range map[string]int{"ann": http.StatusBadRequest, "bo": http.StatusUnauthorized} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodDelete, "/v1/lock/retire",
			strings.NewReader(body("resourceId", "do_1", "resourceType", "content")))
		r.Header = http.Header{userHeader: {"ann", value}, deviceHeader: {"d"}}
		w := httptest.NewRecorder()
		f.server.ServeHTTP(w, r)
		if w.Code != status {
			t.Errorf("with ann and %s: got %d %s, want %d", value, w.Code, w.Body, status)
		}
	}
}

func TestServer_RoutesAndHeaders(t *testing.T) {
	t.Parallel()
	f := newHarness(t, nil)
	u := f.user("u1", "Ann", "d1")
	retire := body("resourceId", "do_1", "resourceType", "content")
	key := u.create("do_1").Result.LockKey
	f.call("POST", "/v1/lock/retire", retire, u.headers()...).refused(t, 404, "ERR_LOCK_ROUTE_NOT_FOUND", "")
	f.call("POST", "/v1/lock/refresh", body("lockId", key, "resourceId", "do_1", "resourceType", "content"),
		append(u.headers(), "X-HTTP-Method-Override", "PATCH")...).wants(t, "api.lock.refresh")
	f.call("POST", "/v1/lock/retire", retire, append(u.headers(), "X-HTTP-Method-Override", "delete")...).wants(t,
		"api.lock.retire")
	for _, call := range [][2]string{
		{"GET", "/v1/lock/list"},
		{"PUT", "/v1/lock/create"},
		{"POST", "/v1/lock"},
		{"GET", "/"},
		{"DELETE", "/v1/lock/create"},
	} {
		f.call(call[0], call[1], "", append(u.headers(), "X-HTTP-Method-Override", "POST")...).refused(t, 404,
			"ERR_LOCK_ROUTE_NOT_FOUND", "")
	}
	for _, path := range []string{"/v1/lock/create", "/v1/lock/list"} {
		a := f.call("OPTIONS", path, "", "Origin", "https://editor.example.org", "Access-Control-Request-Method", "PATCH")
		if a.Status != 200 || a.Header.Get("Access-Control-Allow-Origin") != "*" ||
			a.Header.Get("Access-Control-Allow-Headers") != "*" ||
			!strings.Contains(a.Header.Get("Access-Control-Allow-Methods"), "PATCH") {
			t.Errorf("OPTIONS %s: %d %v", path, a.Status, a.Header)
		}
	}
	if a := f.list(""); a.Header.Get("Access-Control-Allow-Origin") != "*" || len(*a.Params.MsgID) != 36 {
		t.Errorf("the list has %v and the message id %s", a.Header, *a.Params.MsgID)
	}
	if a := f.list(`{"params":{"msgid":"m-body"}}`); *a.Params.MsgID != "m-body" {
		t.Errorf("the message id is %s", *a.Params.MsgID)
	}
	if a := u.retire("free"); a.Params.MsgID == nil || *a.Params.MsgID != "m-1" {
		t.Errorf("the refusal is %s, want the caller's message id", a.text())
	}
	if a := f.list(`{"params":7}`); len(*a.Params.MsgID) != 36 {
		t.Errorf("the message id is %s", *a.Params.MsgID)
	}
}

func TestServer_AnswersAFailingStore(t *testing.T) {
	t.Parallel()
	for _, code := range []fault.Code{fault.Unavailable, fault.Timeout, fault.Internal} {
		f := newHarness(t, func(c *Settings) { c.Admins = []string{"u1"} })
		u := f.user("u1", "Ann", "d1")
		f.store.Fail(fault.New(code, "secret detail"))
		u.create("do_1").refused(t, 500, "ERR_LOCK_CREATION_FAILED", "Creating lock failed")
		u.refresh("do_1", none).refused(t, 500, "ERR_LOCK_REFRESHING_FAILED", "Refreshing lock failed")
		u.retire("do_1").refused(t, 500, "ERR_LOCK_RETIRING_FAILED", "Retiring lock failed")
		f.list("").refused(t, 500, "ERR_LISTING_LOCK_FAILED", "Listing lock failed")
		u.force("do_1", "x").refused(t, 500, "ERR_LOCK_FORCING_FAILED", "Forcing lock failed")
		u.ask("do_1", "x").refused(t, 500, "ERR_LOCK_REQUESTING_FAILED", "Requesting lock failed")
		lines := strings.Count(f.log.String(), "a request failed")
		if outage := code == fault.Unavailable; outage != (f.refused == 6) || outage != (lines == 0) {
			t.Errorf("%s: %d refusals are counted, and logged: %s", code, f.refused, f.log)
		}
	}
}

func TestServer_AnswersAPanic(t *testing.T) {
	t.Parallel()
	f := newHarness(t, func(c *Settings) { c.Admins = []string{"u1"} })
	u := f.user("u1", "Ann", "d1")
	f.server.Locks = engine.NewLocks(struct{ engine.LockStore }{}, observer{}) // all calls of a nil store panic
	u.create("do_1").refused(t, 500, "ERR_LOCK_CREATION_FAILED", "Creating lock failed")
	u.refresh("do_1", none).refused(t, 500, "ERR_LOCK_REFRESHING_FAILED", "Refreshing lock failed")
	u.retire("do_1").refused(t, 500, "ERR_LOCK_RETIRING_FAILED", "Retiring lock failed")
	f.list("").refused(t, 500, "ERR_LISTING_LOCK_FAILED", "Listing lock failed")
	u.force("do_1", "x").refused(t, 500, "ERR_LOCK_FORCING_FAILED", "Forcing lock failed")
	u.ask("do_1", "x").refused(t, 500, "ERR_LOCK_REQUESTING_FAILED", "Requesting lock failed")
	if log := f.log.String(); strings.Count(log, "level=ERROR msg=panic") != 6 || !strings.Contains(log, "locks.go") {
		t.Errorf("the log lacks a panic or its stack: %s", log)
	}
}

func TestServer_AsksTheContentService(t *testing.T) {
	t.Parallel()
	var asked struct {
		path, user, token, body string
		header                  http.Header
	}
	var status int
	var reply string
	content := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.path, asked.user, asked.token = r.URL.Path, r.Header.Get(userHeader), r.Header.Get(tokenHeader)
		asked.header = r.Header
		asked.body = readAll(t, r.Body)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, reply)
	}))
	defer content.Close()
	f := newHarness(t, func(c *Settings) { c.ResourceCheckURL = content.URL })
	u := f.user("u1", "Ann", "d1")
	tests := map[string]struct {
		status int
		answer string
		want   string
	}{
		"a refusal": {
			status: 200, answer: `{"result":{"validation":false,"message":"You are not authorized"}}`,
			want: "You are not authorized",
		},
		"a refusal without a message": {status: 200, answer: `{"result":{"validation":false}}`, want: checkFailed},
		"no JSON":                     {status: 200, answer: `<html>`, want: checkFailed},
		"nothing":                     {status: 200, answer: ``, want: checkFailed},
		"no validation":               {status: 200, answer: `{"result":{}}`, want: checkFailed},
		"another kind":                {status: 200, answer: `{"result":{"validation":"yes"}}`, want: checkFailed},
		"an error":                    {status: 500, answer: `{"result":{"validation":true}}`, want: checkFailed},
		"an error with its reason": {
			status: 500, answer: `{"result":{"message":"Content not found with id: do_1"}}`,
			want: "Content not found with id: do_1",
		},
		"a redirect": {status: 302, answer: `{"result":{"validation":true}}`, want: checkFailed},
		"an endless answer": {
			status: 200, answer: `{"x":"` + strings.Repeat("x", maxCheckAnswer) + `","result":{"validation":true}}`,
			want: checkFailed,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			status, reply = tt.status, tt.answer
			u.create("do_1").refused(t, 412, "ERR_LOCK_CREATION_FAILED", tt.want)
			u.refresh("do_1", none).refused(t, 412, "ERR_LOCK_REFRESHING_FAILED", tt.want)
			u.retire("do_1").refused(t, 412, "ERR_LOCK_RETIRING_FAILED", tt.want)
		})
	}
	status, reply = 200, `{"result":{"validation":true,"contentdata":{}}}`
	key := u.create("do_1").wants(t, "api.lock.create").Result.LockKey
	for api, call := range map[string]func() answer{
		"createLock":  func() answer { return u.create("do_1") },
		"refreshLock": func() answer { return u.refresh("do_1", key) },
		"retireLock":  func() answer { return u.retire("do_1") },
	} {
		call()
		var sent struct {
			Request struct{ APIName, ResourceID string }
		}
		if err := json.Unmarshal([]byte(asked.body), &sent); err != nil || sent.Request.APIName != api ||
			sent.Request.ResourceID != "do_1" {
			t.Errorf("the check of %s got %s", api, asked.body)
		}
		if asked.path != checkPath || asked.user != "u1" || asked.token == "" {
			t.Errorf("the check of %s was asked with %+v", api, asked)
		}
	}
	const override = "X-Http-Method-Override"
	f.call("POST", "/v1/lock/retire", asked.body,
		append(u.headers(), "Authorization", "Bearer x", "Cookie", "a=b", override, "DELETE")...)
	if h := asked.header; h.Get("Authorization") != "Bearer x" || h.Get("Cookie") != "" || h.Get(override) != "" {
		t.Errorf("the check got %v, want the authorization and neither cookie nor method", h)
	}
	content.Close()
	u.create("do_2").refused(t, 412, "ERR_LOCK_CREATION_FAILED", checkFailed)
}
