package storageclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// readyTimeout is longer than storage takes to say that its database does not
// answer, and shorter than the patience of most probes.
const readyTimeout = 4 * time.Second

// Ready returns why storage is not ready, nil when it is. The error says what
// storage answered, or why it was not reached, and is safe to show.
func (c *Client) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	r := get("/admin/health/ready", nil)
	r.noTenant = true
	req, err := c.newRequest(ctx, r)
	if err != nil {
		return err
	}
	start := time.Now()
	const settles = true // a probe that waits behind check-outs would end the instance under load
	status, header, body, err := c.send(req, settles)
	c.options.Observe(r.method, r.route, status, time.Since(start))
	switch {
	case err != nil:
		return fmt.Errorf("storage at %s was not reached: %w", c.options.URL.Host, reason(err))
	case status == http.StatusOK:
		return nil
	}
	return errors.New("storage is not ready: " + readinessText(status, header, body))
}

// readinessText is what storage says of itself, or the status of something in
// between that answered in its place.
func readinessText(status int, header http.Header, body []byte) string {
	text, ours := strings.CutPrefix(quote(status, body, nil), "not ready: ")
	if ours && strings.HasPrefix(header.Get("Content-Type"), "text/plain") {
		return text
	}
	return fmt.Sprintf("%d %s", status, http.StatusText(status))
}

// reason leaves of a lost answer what an operator needs: the innermost cause,
// without the URL.
func reason(err error) error {
	var errno syscall.Errno
	var dns *net.DNSError
	var outer *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("no answer in time")
	case errors.As(err, &errno):
		return errno
	case errors.As(err, &dns):
		return errors.New(dns.Err)
	case errors.As(err, &outer):
		return outer.Err
	}
	return err
}
