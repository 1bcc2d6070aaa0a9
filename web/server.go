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

	"golang.org/x/sync/errgroup"

	"checkoutlock/config"
)

// Server is a listener with limits and an orderly stop.
type Server struct {
	cfg      config.HTTP
	log      *slog.Logger
	ln       net.Listener
	srv      *http.Server
	draining atomic.Bool
}

// errDraining is why a stopping service is not ready.
var errDraining = errors.New("the service is stopping")

// Listen opens the port, so that a port that is taken shows up before the
// service starts to work.
func Listen(ctx context.Context, cfg config.HTTP, log *slog.Logger) (*Server, error) {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen())
	if err != nil {
		return nil, fmt.Errorf("listening on %s (PORT and HTTP_ADDR choose another address): %w", cfg.Listen(), err)
	}
	return &Server{cfg: cfg, log: log, ln: ln}, nil
}

// URL is the address to reach the server at.
func (s *Server) URL() string { return "http://" + s.ln.Addr().String() }

// Draining returns an error once the server stops, for readiness.
func (s *Server) Draining() error {
	if s.draining.Load() {
		return errDraining
	}
	return nil
}

// Close gives up the port of a server that never ran.
func (s *Server) Close() error { return s.ln.Close() }

// Run serves h until ctx is done, then stops in order: it answers "not ready" for
// DrainDelay, calls beforeClose (to answer whoever waits), closes the listener
// and lets running requests finish for at most ShutdownTimeout. Requests keep
// their own contexts meanwhile. It returns nil after an orderly stop.
func (s *Server) Run(ctx context.Context, h http.Handler, beforeClose func()) error {
	s.srv = &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      s.cfg.RequestTimeout + config.FinishMargin,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	s.log.InfoContext(ctx, "serving", "url", s.URL())
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := s.srv.Serve(s.ln); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serving HTTP: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-gctx.Done()
		return s.stop(context.WithoutCancel(gctx), beforeClose)
	})
	err := g.Wait()
	s.log.InfoContext(ctx, "stopped")
	return err
}

func (s *Server) stop(ctx context.Context, beforeClose func()) error {
	s.draining.Store(true)
	if s.cfg.DrainDelay > 0 {
		<-time.After(s.cfg.DrainDelay)
	}
	if beforeClose != nil {
		beforeClose()
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.ShutdownTimeout)
	defer cancel()
	if err := s.srv.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("running requests were cut off: %w", err), s.srv.Close())
	}
	return nil
}
