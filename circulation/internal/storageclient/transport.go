package storageclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	fast "github.com/segmentio/encoding/json"

	"checkoutlock/config/resolver"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
	"checkoutlock/schemas/span"
)

// Storage is reached over two groups of connections, so that what ends a check-out
// never waits for what begins others.
//
// The calls of a check-out that acquire, use or release a lock or a claim follow
// each other. So one connection for each running check-out is enough, and some more
// for the renewals of claims. All other calls, which mostly read, share a bounded
// group and queue for its connections.
const (
	renewalShare = 4 // check-outs for each additional connection of the first group
	readShare    = 2 // check-outs for each connection of the second group
	leastReads   = 4
)

const (
	// maxAnswer is the largest answer that is read: a page of about 20000 loans.
	maxAnswer = 32 << 20
	// idleTimeout is less than the minute after which storage closes an idle
	// connection, so that a call rarely meets one that is being closed.
	idleTimeout = 45 * time.Second
)

// settleConnections is the size of the first group for n check-outs at once.
func settleConnections(n int) int { return n + max(1, n/renewalShare) }

// readConnections is the size of the second one.
func readConnections(n int) int { return max(leastReads, n/readShare) }

// newHTTPClient returns a client with a bounded number of connections to storage. It keeps all
// idle ones: under load, none is closed to be opened again. Plain HTTP goes over connections of our
// own, which send the same again as Go's transport.
//
// Go's transport sends a request again by itself only over a kept connection
// that turned out dead: a GET, or a DELETE (see setHeaders), and any other method only
// if not a byte of it was written. So one try of a POST reaches storage once.
func newHTTPClient(storage *url.URL, n int) *http.Client {
	dialer := net.Dialer{Timeout: 2 * time.Second, KeepAlive: 15 * time.Second, Resolver: resolver.Default}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if storage.Scheme == "http" {
		client.Transport = &connections{dial: dialer.DialContext, places: make(chan struct{}, n)}
		return &client
	}
	client.Transport = &http.Transport{
		DialContext:         dialer.DialContext,
		MaxConnsPerHost:     n,
		MaxIdleConnsPerHost: n,
		IdleConnTimeout:     idleTimeout,
		TLSHandshakeTimeout: 5 * time.Second,
		DisableCompression:  true, // storage is near
		ForceAttemptHTTP2:   true,
	}
	return &client
}

func (c *Client) newRequest(ctx context.Context, r request) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		raw, err := fast.Marshal(r.body)
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

// setHeaders passes on the headers of the call that is being served.
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
	span.Inject(req.Context(), req.Header)
	if r.method == http.MethodDelete {
		// Allows Go's transport to repeat the request. The empty list sends no header.
		req.Header["Idempotency-Key"] = []string{}
	}
	return nil
}

var errTooLong = errors.New("the answer is too long")

// transfer sends the request, reads the whole answer, and measures both. It returns status 0 and
// an error if the answer is incomplete.
func (c *Client) transfer(req *http.Request, r request) (status int, header http.Header, body []byte, err error) {
	client := c.read
	if r.settles {
		client = c.settle
	}
	start := time.Now()
	defer func() { c.options.Observe(r.method, r.route, status, time.Since(start)) }()
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	var text bytes.Buffer
	text.Grow(int(min(max(resp.ContentLength, 0), maxAnswer)) + bytes.MinRead) // ReadFrom keeps MinRead free
	if _, err := text.ReadFrom(io.LimitReader(resp.Body, maxAnswer+1)); err != nil {
		return 0, nil, nil, fmt.Errorf("reading the answer: %w", err)
	}
	if text.Len() > maxAnswer {
		return 0, nil, nil, errTooLong
	}
	return resp.StatusCode, resp.Header, text.Bytes(), nil
}
