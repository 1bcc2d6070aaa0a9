package storageclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	fast "github.com/segmentio/encoding/json"

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

// settleConnections is the size of the first group for n check-outs at once.
func settleConnections(n int) int { return n + max(1, n/renewalShare) }

// readConnections is the size of the second one.
func readConnections(n int) int { return max(leastReads, n/readShare) }

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
	if user := c.options.URL.User; user != nil {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
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
	return nil
}

// transfer sends the request, reads the whole answer, and measures both. It returns status 0 and
// an error if the answer is incomplete.
func (c *Client) transfer(req *http.Request, r request) (answer received, err error) {
	connections := c.read
	if r.settles {
		connections = c.settle
	}
	start := time.Now()
	defer func() { c.options.Observe(r.method, r.route, answer.status, time.Since(start)) }()
	return connections.exchange(req)
}
