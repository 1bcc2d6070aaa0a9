// Package mutexapi serves locks that say "in use by this user", over HTTP: a user takes a
// resource, renews it while working on it, and frees it. A lock blocks no reads or writes.
package mutexapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/config"
	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
	"checkoutlock/web/auth"
)

const (
	// requestTimeout bounds the work for one request.
	requestTimeout = 10 * time.Second
	// bodyLimit is the largest body in bytes. No body is read.
	bodyLimit = 1 << 20
)

// Options configure New. All fields are required.
type Options struct {
	Settings Settings // valid; without an address the front is off
	Locks    *engine.Locks
	// Guard says which pages may call.
	Guard *auth.Guard
	Log   *slog.Logger
	// Registry gets the metrics of the front's requests, with the prefix mutex_.
	Registry prometheus.Registerer
	// Ready returns why the service cannot work; nil means ready.
	Ready        func(context.Context) error
	CountRefusal func() bool // is that of web.Options
	// HTTP has how the server stops. Its address and RequestTimeout are not used.
	HTTP config.HTTP
}

// New returns the front, and registers its metrics.
func New(o Options) (web.Front, error) {
	if o.Settings.Addr == "" {
		return web.Front{}, nil
	}
	log := o.Log.With("front", "mutex")
	o.HTTP.RequestTimeout = requestTimeout
	server, err := web.NewServerAt("MUTEX_ADDR", o.Settings.Addr, o.HTTP, log)
	if err != nil {
		return web.Front{}, err
	}
	// The edge's metrics have the names of the service's own HTTP server.
	registry := prometheus.NewRegistry()
	if err := prometheus.WrapRegistererWithPrefix("mutex_", o.Registry).Register(registry); err != nil {
		return web.Front{}, fmt.Errorf("registering the metrics of the mutex: %w", err)
	}
	routes := (&handlers{o}).routes()
	server.Handler = web.New(web.Options{
		Log: log, Registry: registry, RequestTimeout: requestTimeout, BodyLimit: bodyLimit,
		WriteFault: writeFault, Ready: server.Ready(o.Ready), CountRefusal: o.CountRefusal,
	}, web.WithGuard(routes, func(web.Route) echo.MiddlewareFunc {
		return func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				if err := o.Guard.CheckPage(c.Request(), server.Host()); err != nil {
					return err
				}
				return next(c)
			}
		}
	}))
	return web.Front{Name: "mutex", Listener: server}, nil
}

// failure is the answer of every status from 400 on.
type failure struct {
	Message string `json:"message"`
	UserID  any    `json:"user_id,omitempty"` // the holder, for 423
}

func writeFault(c echo.Context, status int, f *fault.Error) error {
	if f.Code == fault.Internal {
		return c.JSON(http.StatusInternalServerError, failure{Message: "Internal server error"})
	}
	return c.JSON(status, failure{Message: f.Msg})
}
