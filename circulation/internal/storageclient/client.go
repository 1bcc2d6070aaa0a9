// Package storageclient reaches circulation-storage over HTTP. It is the only package of
// circulation that does, and implements the ports of the domain packages.
package storageclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	fast "github.com/segmentio/encoding/json"

	"checkoutlock/circulation/internal/cache"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/schemas/span"
)

// callTimeout bounds one call, except for the wait for a lock.
const callTimeout = 10 * time.Second

// Options configure New. All fields except ReadyTenant are required.
type Options struct {
	// URL is storage's address, without a path or with the one of a gateway.
	URL *url.URL
	// Instance names this process to operators, as the holder of its locks.
	Instance string
	// ReadyTenant is the tenant that the question for readiness names, for a proxy
	// that chooses a storage by the tenant. The zero value names none.
	ReadyTenant okapi.Tenant
	// CheckOuts is how many check-outs run at once.
	CheckOuts int
	// Observe is called for each call: its path's template, the answer's status (0 for
	// none) and the time it took.
	Observe func(method, route string, status int, took time.Duration)
}

// Client is one storage, for all tenants: the tenant comes with the context, as
// do request id, user, token and permissions. It is safe for concurrent use.
//
// Faults of all methods: what storage answered (see answerFault); Unavailable
// if storage was not reached or its answer was lost; Timeout if it took longer
// than the call's own time-out. The caller's cancellation or deadline stays
// recognisable as the context's error and is no fault.
type Client struct {
	options Options
	base    string
	settle  *connections // for requests that settle
	read    *connections // for all others
	cache   *cache.Cache[cacheKey, any]

	mu       sync.Mutex
	versions map[string]referenceVersion // by tenant
}

// New returns a client. It connects when it is used.
func New(o Options) *Client {
	c := &Client{
		options: o,
		base:    strings.TrimSuffix(o.URL.String(), "/"),
		settle:  newConnections(o.URL, settleConnections(o.CheckOuts)),
		read:    newConnections(o.URL, readConnections(o.CheckOuts)),
		cache:   cache.New[cacheKey, any](cacheAge, cacheSize),

		versions: map[string]referenceVersion{},
	}
	c.cache.Version = func(key cacheKey) (string, time.Time) {
		c.mu.Lock()
		defer c.mu.Unlock()
		v := c.versions[key.tenant]
		return v.version, v.read
	}
	return c
}

// Close drops the connections that are kept open.
func (c *Client) Close() {
	c.settle.Reset()
	c.read.Reset()
}

// request is one call.
type request struct {
	doing    string // what the call is for; errors begin with it, unless it is empty
	method   string
	route    string // the path's template, for metrics and log
	path     string
	query    url.Values
	body     any // nil for none
	want     int // the status of success
	or       int // another status of success; 0 for none
	timeout  time.Duration
	settles  bool // the call uses the connections set apart: see transport.go
	record   bool // the path names a record, so a 404 means that there is none
	noTenant bool
}

// get returns the request for what always exists: a collection, a count, a document.
func get(doing, path string, query url.Values) request {
	return request{doing: doing, method: http.MethodGet, route: path, path: path, query: query, want: http.StatusOK}
}

// getRecord returns the request for one record of a collection.
func getRecord(doing, collection, id string) request {
	r := get(doing, collection+"/"+id, nil)
	r.route, r.record = collection+"/{id}", true
	return r
}

// changeRecord returns a request that changes a record and is answered without a body.
func changeRecord(doing, method, collection, id string, body any) request {
	r := getRecord(doing, collection, id)
	r.method, r.body, r.want = method, body, http.StatusNoContent
	return r
}

// deleteMatching returns a request that deletes what the query names.
func deleteMatching(doing, path string, query url.Values) request {
	r := get(doing, path, query)
	r.method, r.want = http.MethodDelete, http.StatusNoContent
	return r
}

// send returns a request with a body.
func send(doing, method, path string, body any, want int) request {
	return request{doing: doing, method: method, route: path, path: path, body: body, want: want}
}

// settling returns r for the connections set apart: see transport.go.
func (r request) settling() request {
	r.settles = true
	return r
}

// do makes the call and returns the answer's body.
func (c *Client) do(ctx context.Context, r request) ([]byte, error) {
	body, err := c.exchange(ctx, r)
	if err != nil && r.doing != "" {
		err = fmt.Errorf("%s: %w", r.doing, err)
	}
	return body, err
}

// run makes a call whose answer says nothing more.
func (c *Client) run(ctx context.Context, r request) error {
	_, err := c.do(ctx, r)
	return err
}

func (c *Client) exchange(ctx context.Context, r request) (_ []byte, err error) {
	if span.IsRecorded(ctx) { // the name costs something
		var end func(*error)
		ctx, end = span.Start(ctx, "call "+r.method+" "+r.route)
		defer func() { end(&err) }()
	}
	if r.timeout == 0 {
		r.timeout = callTimeout
	}
	cctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	req, err := c.newRequest(cctx, r)
	if err != nil {
		return nil, err
	}
	answer, err := c.transfer(req, r)
	switch {
	case err != nil:
		return nil, lostAnswer(ctx, cctx, r, err)
	case answer.status != r.want && answer.status != r.or:
		err = answerFault(r, answer)
		if answer.repeated && r.method == http.MethodDelete && fault.Is(err, fault.NotFound) {
			return nil, nil // the first one deleted it
		}
		return nil, err
	}
	return answer.body, nil
}

// call makes the call and decodes the JSON answer. An answer without its essential part, by has,
// is unreadable; a nil has demands nothing.
func call[T any](ctx context.Context, c *Client, r request, part string, has func(T) bool) (T, error) {
	var none, answer T
	body, err := c.do(ctx, r)
	if err != nil {
		return none, err
	}
	if err := decode(r, body, &answer); err != nil {
		return none, err
	}
	if has != nil && !has(answer) {
		return none, unreadable(r, errors.New("it has no "+part))
	}
	return answer, nil
}

// decode reads a JSON answer.
func decode(r request, body []byte, v any) error {
	if err := fast.Unmarshal(body, v); err != nil {
		return unreadable(r, err)
	}
	return nil
}

func unreadable(r request, err error) error {
	return fault.Wrap(fmt.Errorf("answer to %s %s: %w", r.method, r.route, err), fault.Internal, "Storage gave an answer that cannot be read")
}
