package storageclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// readyTimeout is longer than storage needs to report that its database does not
// answer, and shorter than the time-out of most probes.
const readyTimeout = 4 * time.Second

// Ready returns why storage is not ready, nil if it is. The error has the text that
// storage answered, or why it was not reached, and is safe to show.
func (c *Client) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	r := get("", "/admin/health/ready", nil).settling() // a probe that queues with the reads would end the instance under load
	r.noTenant = true
	req, err := c.newRequest(ctx, r)
	if err != nil {
		return err
	}
	answer, err := c.transfer(req, r)
	switch {
	case err != nil:
		return fmt.Errorf("storage at %s was not reached: %w", c.options.URL.Host, innermostCause(err))
	case answer.status == http.StatusOK:
		return nil
	}
	return errors.New("storage is not ready: " + readinessText(answer))
}

// readinessText is storage's own text, or the status of a proxy that answered in its place.
func readinessText(answer received) string {
	text, ours := strings.CutPrefix(quote(answer.status, answer.body, nil), "not ready: ")
	if ours && strings.HasPrefix(answer.header.Get("Content-Type"), "text/plain") {
		return text
	}
	return fmt.Sprintf("%d %s", answer.status, http.StatusText(answer.status))
}

// innermostCause reduces the error of a lost answer to what an operator needs.
func innermostCause(err error) error {
	var errno syscall.Errno
	var dns *net.DNSError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return errors.New("no answer in time")
	case errors.As(err, &errno):
		return errno
	case errors.As(err, &dns):
		return errors.New(dns.Err)
	}
	return err
}
