// Package locktopus serves the protocol of Locktopus: claims of paths with read and write
// mode, one connection each, over web sockets.
package locktopus

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"checkoutlock/config"
	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// maxConnections bounds the connections of one process.
const maxConnections = 20_000

// Answers before the upgrade. The texts are the published server's: clients compare them.
const (
	needsNamespace = "URL parameter 'namespace' is required"
	wrongAbandon   = "URL parameter 'abandon-timeout-ms' should be integer value >= 0 representing broken connection timeout (in milliseconds)"
)

// Options configure New. All fields are required.
type Options struct {
	Settings Settings // valid; without an address the front is off
	// HTTP has the time-outs of the server. Its address is not used.
	HTTP         config.HTTP
	Claims       *engine.Claims
	Panics       *web.Panics // of connections
	Log          *slog.Logger
	CountRefusal func() bool // is that of web.Options
}

// New returns the front.
func New(o Options) (web.Front, error) {
	if o.Settings.Addr == "" {
		return web.Front{}, nil
	}
	o.Log = o.Log.With("front", "locktopus")
	listener, err := web.NewServerAt("LOCKTOPUS_ADDR", o.Settings.Addr, o.HTTP, o.Log)
	if err != nil {
		return web.Front{}, err
	}
	handler := newServer(o)
	listener.Handler, listener.BeforeClose = handler, handler.stopAll
	return web.Front{Name: "locktopus", Listener: listener}, nil
}

// server is the http.Handler of the front. It owns its connections, which an http.Server
// does not end: call stopAll before the listener closes.
type server struct {
	Options
	upgrader websocket.Upgrader
	mux      *http.ServeMux

	ctx     context.Context //nolint:containedctx // done once stopAll is called
	stop    context.CancelFunc
	serving sync.WaitGroup

	mu       sync.Mutex
	stopping bool
	open     int
	limit    int // of open
}

func newServer(o Options) *server {
	o.Panics.Expect(workerName)
	s := &server{
		Options: o, limit: maxConnections, mux: http.NewServeMux(),
		// An idle connection keeps a read buffer only. Compression would cost more memory.
		upgrader: websocket.Upgrader{
			ReadBufferSize: 512, WriteBufferSize: 1 << 10, WriteBufferPool: &sync.Pool{},
			CheckOrigin: func(*http.Request) bool { return true },
		},
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.mux.HandleFunc("GET /v1", s.connect)
	s.mux.HandleFunc("GET /stats_v1", s.stats)
	return s
}

// ServeHTTP implements http.Handler. A panic is a 500, as in the other fronts.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := try(func() { s.mux.ServeHTTP(w, r) }); err != nil {
		s.Panics.Note(r.Context(), workerName, err)
		http.Error(w, fault.Text(err), http.StatusInternalServerError)
	}
}

// stopAll ends all connections and refuses new ones. It returns when all have ended, which
// the time-outs of a connection bound.
func (s *server) stopAll() {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.stop()
	s.serving.Wait()
}

// connect upgrades a request and serves the connection. It returns after the upgrade, so
// that the buffers of the HTTP server are freed.
func (s *server) connect(w http.ResponseWriter, r *http.Request) {
	namespace, abandon, problem := s.parseQuery(r.URL)
	if problem != "" {
		http.Error(w, problem, http.StatusBadRequest)
		return
	}
	if !s.addConnection() {
		http.Error(w, "The service is stopping, or has too many connections: try again", http.StatusServiceUnavailable)
		return
	}
	var c *connection
	defer func() {
		if c == nil { // also after a panic
			s.removeConnection()
		}
	}()
	c = s.upgrade(w, r, namespace)
	if c == nil {
		return
	}
	c.abandon = abandon
	go func() {
		defer s.removeConnection()
		c.serve(context.WithoutCancel(s.ctx), s.ctx) // the connection outlives the request
	}()
}

// upgrade answers the request itself and returns nil if it fails. The namespace exists from then on.
func (s *server) upgrade(w http.ResponseWriter, r *http.Request, namespace string) *connection {
	if !isHandshake(r) {
		http.Error(w, "This address serves web sockets only: the request has no upgrade headers of version 13", http.StatusBadRequest)
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), callTimeout)
	defer cancel()
	if err := s.Claims.OpenNamespace(ctx, namespace); err != nil {
		s.refuse(ctx, w, err)
		return nil
	}
	ws, err := s.upgrader.Upgrade(countingWriter{w}, r, nil)
	if err != nil {
		s.Log.DebugContext(ctx, "a web socket was refused", "err", err)
		return nil
	}
	return &connection{server: s, ws: ws, namespace: namespace, owner: r.RemoteAddr, session: newSession()}
}

// isHandshake reports whether the upgrade will succeed, so that other requests open no
// namespace.
func isHandshake(r *http.Request) bool {
	key, err := base64.StdEncoding.DecodeString(r.Header.Get("Sec-Websocket-Key"))
	return websocket.IsWebSocketUpgrade(r) && r.Header.Get("Sec-Websocket-Version") == "13" && err == nil && len(key) == 16
}

// addConnection reserves a place, which removeConnection returns.
func (s *server) addConnection() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping || s.open >= s.limit {
		return false
	}
	s.open++
	s.serving.Add(1)
	return true
}

func (s *server) removeConnection() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	s.serving.Done()
}

// parseQuery reads the parameters of a connection, or says what is wrong with them.
func (s *server) parseQuery(u *url.URL) (namespace string, abandon time.Duration, problem string) {
	namespace, q, problem := parseNamespace(u)
	if problem != "" {
		return "", 0, problem
	}
	if !q.Has("abandon-timeout-ms") {
		return namespace, s.Settings.AbandonTimeout, ""
	}
	ms, err := strconv.ParseInt(q.Get("abandon-timeout-ms"), 10, 64)
	if err != nil || ms < 0 {
		return "", 0, wrongAbandon
	}
	ms = min(ms, engine.MaxTTL.Milliseconds())
	return namespace, time.Duration(ms) * time.Millisecond, ""
}

func parseNamespace(u *url.URL) (namespace string, q url.Values, problem string) {
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", nil, "The URL parameters cannot be read: " + err.Error()
	}
	namespace = q.Get("namespace")
	if namespace == "" {
		return "", nil, needsNamespace
	}
	return namespace, q, ""
}

// statistics are in the words of the protocol. The index of the engine has no tokens, so
// the last three are the number of distinct paths.
type statistics struct {
	LastGroupID    int64
	GroupsPending  int
	GroupsAcquired int
	LocksPending   int
	LocksAcquired  int
	LockrefCount   int
	TokensTotal    int
	TokensUnique   int
	PathCount      int
}

func (s *server) stats(w http.ResponseWriter, r *http.Request) {
	namespace, _, problem := parseNamespace(r.URL)
	if problem != "" {
		http.Error(w, problem, http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
	defer cancel()
	n, err := s.Claims.Stats(ctx, namespace)
	if err != nil {
		s.refuse(ctx, w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	err = json.NewEncoder(w).Encode(statistics{
		LastGroupID: n.LastNumber, GroupsPending: n.Waiting, GroupsAcquired: n.Held,
		LocksPending: n.WaitingResources, LocksAcquired: n.HeldResources,
		LockrefCount: n.WaitingResources + n.HeldResources,
		TokensTotal:  n.Paths, TokensUnique: n.Paths, PathCount: n.Paths,
	})
	if err != nil {
		s.Log.DebugContext(ctx, "an answer was not sent", "err", err)
	}
}

// refuse answers a fault of the engine as plain text.
func (s *server) refuse(ctx context.Context, w http.ResponseWriter, err error) {
	status := fault.Status(fault.CodeOf(err))
	if fault.Is(err, fault.Invalid) {
		status = http.StatusBadRequest // the protocol knows no 422
	}
	if status >= http.StatusInternalServerError {
		s.Log.Log(ctx, engine.LevelOf(err, s.CountRefusal), "a request failed", "err", err)
	}
	http.Error(w, fault.Text(err), status)
}
