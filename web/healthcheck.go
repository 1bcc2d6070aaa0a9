package web

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"checkoutlock/config"
)

const healthcheckTimeout = 5 * time.Second

// listener is what Healthcheck needs of a service's settings.
type listener struct{ *config.HTTP }

// Validate implements config.Validator; the service itself checks its settings.
func (listener) Validate() error { return nil }

// Healthcheck calls the readiness endpoint of the service on this machine, for
// containers without a shell. The settings in environ override those in cfg. nil means
// ready.
func Healthcheck(ctx context.Context, cfg config.HTTP, environ []string) error {
	if err := config.Load(&listener{&cfg}, environ); err != nil {
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
	resp, err := http.DefaultClient.Do(req)
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
