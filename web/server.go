package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"checkoutlock/config"
)

// Server is the Front of HTTP, with limits and an orderly stop. Set Handler before Serve.
type Server struct {
	Handler http.Handler
	// BeforeClose ends requests that wait, so that they do not delay the stop. It may be
	// nil.
	BeforeClose func()
	// Settings names what chooses the address, for the error of a taken one. Empty means
	// PORT and HTTP_ADDR.
	Settings string

	cfg      config.HTTP
	log      *slog.Logger
	ln       net.Listener
	srv      *http.Server
	draining atomic.Bool
}

// errDraining is why a stopping service is not ready.
var errDraining = errors.New("the service is stopping")

// NewServer returns a server that does not listen yet.
func NewServer(cfg config.HTTP, log *slog.Logger) *Server { return &Server{cfg: cfg, log: log} }

// Listen implements Front.
func (s *Server) Listen(ctx context.Context) error {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.cfg.Listen())
	if err != nil {
		return fmt.Errorf("listening on %s (to choose another address, set %s): %w", s.cfg.Listen(), cmp.Or(s.Settings, "PORT and HTTP_ADDR"), err)
	}
	s.ln = ln
	s.srv = &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      s.cfg.RequestTimeout + config.FinishMargin,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	return nil
}

// URL is the address to reach the server at.
func (s *Server) URL() string { return "http://" + s.ln.Addr().String() }

// Ready returns a readiness check that fails once the server drains, and else calls check.
func (s *Server) Ready(check func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if s.draining.Load() {
			return errDraining
		}
		return check(ctx)
	}
}

// Serve implements Front. Requests have contexts of their own.
func (s *Server) Serve(ctx context.Context) error {
	s.log.InfoContext(ctx, "serving", "url", s.URL())
	s.srv.Handler = s.Handler
	if err := s.srv.Serve(s.ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving HTTP: %w", err)
	}
	return nil
}

// Drain implements Front. It reports "not ready" for DrainDelay, calls BeforeClose,
// closes the listener and lets running requests finish for at most ShutdownTimeout.
func (s *Server) Drain(ctx context.Context) error {
	defer s.log.InfoContext(ctx, "stopped")
	s.draining.Store(true)
	if s.cfg.DrainDelay > 0 {
		<-time.After(s.cfg.DrainDelay)
	}
	if s.BeforeClose != nil {
		s.BeforeClose()
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.ShutdownTimeout)
	defer cancel()
	if err := s.srv.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("running requests were cut off: %w", err), s.srv.Close())
	}
	return nil
}
