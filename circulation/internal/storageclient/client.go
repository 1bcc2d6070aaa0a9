// Package storageclient reaches circulation-storage over HTTP. It is the only
// package of circulation that does, and implements the ports of package checkout
// and its neighbours.
package storageclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

const (
	// callTimeout bounds one call, but for the wait for a lock.
	callTimeout = 10 * time.Second
	// maxAnswer is the largest answer that is read: a page of about 20000 loans.
	maxAnswer = 32 << 20
	// idleTimeout is less than the minute after which storage closes an idle
	// connection, so that a call rarely meets one that is being closed.
	idleTimeout = 45 * time.Second
)

// Options configure New. All fields but ReadyTenant are required.
type Options struct {
	// URL is storage's address, without a path or with the one of a gateway.
	URL *url.URL
	// Instance names this process to whoever looks at the locks it holds.
	Instance string
	// ReadyTenant is the tenant that the question for readiness names, for a proxy
	// that chooses a storage by the tenant. The zero value names none.
	ReadyTenant okapi.Tenant
	// CheckOuts is how many check-outs are worked on at once.
	CheckOuts int
	// Observe is told each call: its path's template, the answer's status (0 for
	// none) and the time it took.
	Observe func(method, route string, status int, took time.Duration)
}

// Client is one storage, for all tenants: the tenant comes with the context, as
// do request id, user, token and permissions. It is safe for concurrent use.
//
// Faults of all methods: what storage answered (see answerFault); Unavailable
// when it was not reached or the answer got lost; Timeout when it took longer
// than the call's own time-out. The caller's cancellation or deadline stays
// recognisable as the context's error and is no fault.
type Client struct {
	options Options
	base    string
	settle  *http.Client // for requests that settle
	read    *http.Client // for all others
	cache   *cache
}

// New returns a client. It connects when it is used.
func New(o Options) *Client {
	return &Client{
		options: o,
		base:    strings.TrimSuffix(o.URL.String(), "/"),
		settle:  newHTTPClient(settleConnections(o.CheckOuts)),
		read:    newHTTPClient(readConnections(o.CheckOuts)),
		cache:   newCache(),
	}
}

// Close drops the connections that are kept open.
func (c *Client) Close() {
	c.settle.CloseIdleConnections()
	c.read.CloseIdleConnections()
}

// request is one call.
type request struct {
	method   string
	route    string // the path's template, for metrics and log
	path     string
	query    url.Values
	body     any // nil for none
	want     int // the status that is a success
	or       int // another one; 0 for none
	timeout  time.Duration
	settles  bool // it is one of those for which connections are set apart: see transport.go
	record   bool // the path names a record, so that a 404 says there is none
	noTenant bool
}

// get is the request for what is always there: a collection, a count, a document.
func get(path string, query url.Values) request {
	return request{method: http.MethodGet, route: path, path: path, query: query, want: http.StatusOK}
}

// getRecord is the request for one record of a collection.
func getRecord(collection, id string) request {
	r := get(collection+"/"+id, nil)
	r.route, r.record = collection+"/{id}", true
	return r
}

// do makes the call and returns the answer's body.
func (c *Client) do(ctx context.Context, r request) ([]byte, error) {
	if r.timeout == 0 {
		r.timeout = callTimeout
	}
	cctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	req, err := c.newRequest(cctx, r)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	status, header, body, err := c.send(req, r.settles)
	c.options.Observe(r.method, r.route, status, time.Since(start))
	switch {
	case err != nil:
		return nil, lostAnswer(ctx, r, err)
	case status != r.want && status != r.or:
		return nil, answerFault(r, status, header, body)
	}
	return body, nil
}

func (c *Client) newRequest(ctx context.Context, r request) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		raw, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("writing the body of %s %s: %w", r.method, r.route, err)
		}
		body = bytes.NewReader(raw)
	}
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, fmt.Errorf("making the request %s %s: %w", r.method, r.route, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, c.setHeaders(req, r)
}

// setHeaders passes on what the call that is being served came with.
func (c *Client) setHeaders(req *http.Request, r request) error {
	id, err := okapi.TenantFrom(req.Context())
	if err != nil && !r.noTenant {
		return fmt.Errorf("calling %s %s: %w", r.method, r.route, err)
	}
	info := okapi.FromContext(req.Context())
	permissions := ""
	if len(info.Permissions) > 0 {
		raw, err := json.Marshal(info.Permissions)
		if err != nil {
			return fmt.Errorf("writing the permissions: %w", err)
		}
		permissions = string(raw)
	}
	if r.noTenant {
		id = c.options.ReadyTenant
	}
	for name, value := range map[string]string{
		"Accept":                "application/json, text/plain",
		okapi.TenantHeader:      id.String(),
		okapi.RequestIDHeader:   info.RequestID,
		okapi.UserIDHeader:      info.UserID,
		okapi.TokenHeader:       info.Token,
		okapi.PermissionsHeader: permissions,
		schemas.HolderHeader:    c.options.Instance,
	} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if r.method == http.MethodDelete {
		// Tells Go's transport, and only it, that the request may be repeated.
		req.Header["Idempotency-Key"] = []string{}
	}
	return nil
}

// send returns status 0 and an error when the answer did not come whole.
func (c *Client) send(req *http.Request, settles bool) (int, http.Header, []byte, error) {
	client := c.read
	if settles {
		client = c.settle
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return 0, nil, nil, fmt.Errorf("reading the answer: %w", err)
	}
	if len(body) > maxAnswer {
		return 0, nil, nil, errTooLong
	}
	return resp.StatusCode, resp.Header, body, nil
}

var errTooLong = errors.New("the answer is too long")

// decode reads a JSON answer.
func decode(r request, body []byte, v any) error {
	if err := json.Unmarshal(body, v); err != nil {
		return unreadable(r, err)
	}
	return nil
}

func unreadable(r request, err error) error {
	return fault.Wrap(fmt.Errorf("answer to %s %s: %w", r.method, r.route, err), fault.Internal, "Storage gave an answer that cannot be read")
}
