package web

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"checkoutlock/config"
	"checkoutlock/schemas/fault"
)

// readiness answers /admin/health/ready. Probes come every few seconds, so it logs
// only what changes.
type readiness struct {
	Options

	mu   sync.Mutex
	last string // why the service was not ready; "" when it was
}

func (r *readiness) answer(c echo.Context) error {
	ctx := c.Request().Context()
	err := r.Ready(ctx)
	reason := ""
	if err != nil {
		reason = fault.Text(err)
	}
	r.logChange(ctx, reason)
	if err != nil {
		return c.String(http.StatusServiceUnavailable, "not ready: "+reason)
	}
	return c.String(http.StatusOK, "ready")
}

func (r *readiness) logChange(ctx context.Context, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch reason {
	case r.last:
	case "":
		r.Log.InfoContext(ctx, "ready again")
	default:
		r.Log.WarnContext(ctx, "not ready", "reason", reason)
	}
	r.last = reason
}

const healthcheckTimeout = 5 * time.Second

// httpSettings is what Healthcheck needs of a service's settings.
type httpSettings struct{ *config.HTTP }

// Validate implements config.Validator; the service itself checks its settings.
func (httpSettings) Validate() error { return nil }

// Healthcheck calls the readiness endpoint of the service on this host, for
// containers without a shell. The settings in environ override those in cfg. nil means
// ready.
func Healthcheck(ctx context.Context, cfg config.HTTP, environ []string) error {
	if err := config.Load(&httpSettings{&cfg}, environ); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	host := cfg.Addr
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "127.0.0.1"
	}
	url := "http://" + net.JoinHostPort(host, strconv.Itoa(cfg.Port)) + "/admin/health/ready"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking %s: %w", url, err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{}}).Do(req) // without a proxy: it asks this host
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return fmt.Errorf("%s answered %d: %s", url, resp.StatusCode, text)
	}
	return nil
}
