package web

import (
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

// Server is the Listener of HTTP, with limits and an orderly stop. Set Handler before Serve.
type Server struct {
	Handler http.Handler
	// BeforeClose ends requests that wait, so that they do not delay the stop. It may be
	// nil.
	BeforeClose func()

	cfg      config.HTTP
	chosenBy string // the settings of the address, for the error of a taken one
	log      *slog.Logger
	ln       net.Listener
	srv      *http.Server
	serving  atomic.Bool
	draining atomic.Bool
}

// errDraining is why a stopping service is not ready.
var errDraining = errors.New("the service is stopping")

// NewServer returns a server that does not listen yet.
func NewServer(cfg config.HTTP, log *slog.Logger) *Server {
	return &Server{cfg: cfg, chosenBy: "PORT and HTTP_ADDR", log: log}
}

// NewServerAt is NewServer for the address addr, a host:port that the setting variable has.
// cfg gives the time-outs.
func NewServerAt(variable, addr string, cfg config.HTTP, log *slog.Logger) (*Server, error) {
	var err error
	if cfg.Addr, cfg.Port, err = config.SplitAddr(variable, addr); err != nil {
		return nil, err
	}
	return &Server{cfg: cfg, chosenBy: variable, log: log}, nil
}

// Host is the host of the address that the settings choose. Empty is each address.
func (s *Server) Host() string { return s.cfg.Addr }

// Listen implements Listener.
func (s *Server) Listen(ctx context.Context) error {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.cfg.Listen())
	if err != nil {
		return fmt.Errorf("listening on %s (to choose another address, set %s): %w", s.cfg.Listen(), s.chosenBy, err)
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

// URL implements Listener.
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

// Serve implements Listener. Requests have contexts of their own.
func (s *Server) Serve(ctx context.Context) error {
	s.log.InfoContext(ctx, "serving", "url", s.URL())
	s.srv.Handler = s.Handler
	s.serving.Store(true)
	if err := s.srv.Serve(s.ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving HTTP: %w", err)
	}
	return nil
}

// Drain implements Listener. It reports "not ready" for DrainDelay if it serves, calls BeforeClose,
// closes the listener and lets running requests finish for at most ShutdownTimeout.
func (s *Server) Drain(ctx context.Context) error {
	defer s.log.InfoContext(ctx, "stopped")
	s.draining.Store(true)
	if s.cfg.DrainDelay > 0 && s.serving.Load() {
		<-time.After(s.cfg.DrainDelay)
	}
	if s.BeforeClose != nil {
		s.BeforeClose()
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.ShutdownTimeout)
	defer cancel()
	defer s.ln.Close() // Shutdown closes it only after Serve
	if err := s.srv.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("running requests were cut off: %w", err), s.srv.Close())
	}
	return nil
}
