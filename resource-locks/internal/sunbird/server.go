// Package sunbird serves the lock service of Sunbird: exclusive locks of users on the
// resources that they edit, over HTTP with JSON envelopes.
package sunbird

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"checkoutlock/config"
	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
	"checkoutlock/web/auth"
)

// requestTimeout bounds the work for one request.
const requestTimeout = 15 * time.Second

// Options configure New. All fields are required.
type Options struct {
	Settings Settings // valid; without an address the front is off
	// HTTP has the time-outs of the server. Its address is not used.
	HTTP  config.HTTP
	Locks *engine.Locks
	// Guard says which pages may call without a token.
	Guard *auth.Guard
	Log   *slog.Logger
	// Registry gets the metrics of notices.
	Registry     prometheus.Registerer
	CountRefusal func() bool // is that of web.Options
}

// New returns the front. It reads the keys of tokens, and registers the metrics of notices.
func New(o Options) (web.Front, error) {
	if o.Settings.Addr == "" {
		return web.Front{}, nil
	}
	o.Log = o.Log.With("front", "sunbird")
	listener, err := web.NewServerAt("SUNBIRD_ADDR", o.Settings.Addr, o.HTTP, o.Log)
	if err != nil {
		return web.Front{}, err
	}
	handler, err := newServer(o, listener.Host())
	if err != nil {
		return web.Front{}, err
	}
	listener.Handler = handler
	return web.Front{
		Name: "sunbird", Listener: listener, Workers: []web.Worker{{Name: "notices of Sunbird", Run: handler.notices.run}},
	}, nil
}

// server is the http.Handler of the front.
type server struct {
	Options
	identify identify
	// checkPage refuses requests of foreign pages. It is nil with tokens, which no other page has.
	checkPage func(*http.Request) error
	check     resourceCheck
	notices   *notices
	lists     *semaphore.Weighted
}

// newServer returns the handler of a server that listens on host.
func newServer(o Options, host string) (*server, error) {
	cfg := o.Settings
	s := &server{
		Options: o, identify: identifyByHeader, lists: semaphore.NewWeighted(maxLists),
		check: newResourceCheck(cfg.ResourceCheckURL), notices: newNotices(cfg.NoticeURL, o.Registry, o.Log),
	}
	if cfg.Auth == AuthToken {
		known, err := loadKeys(cfg.Keys)
		if err != nil {
			return nil, err
		}
		s.identify = identifyByToken(known, cfg.Issuer)
		return s, nil
	}
	s.checkPage = func(r *http.Request) error { return o.Guard.CheckPage(r, host) }
	return s, nil
}

// operation is one route.
type operation struct {
	method, path string
	id           string // of answers
	failed       string // the code of refusals
	missing      string // the code of bad fields
	doing        string // the first word of the text if the store fails
	// withoutUser and withoutDevice say what the operation does not need.
	withoutUser, withoutDevice bool
	run                        func(s *server, ctx context.Context, c *call) (result any, err error)
}

// operations are those of the published service, with its ids and codes: clients compare them.
// force and request are ours.
var operations = []operation{
	{
		method: http.MethodPost, path: "/v1/lock/create", id: "api.lock.create", doing: "Creating", run: (*server).create,
		failed: "ERR_LOCK_CREATION_FAILED", missing: "ERR_LOCK_CREATION_FIELDS_MISSING",
	},
	{
		method: http.MethodPatch, path: "/v1/lock/refresh", id: "api.lock.refresh", doing: "Refreshing", run: (*server).refresh,
		failed: "ERR_LOCK_REFRESHING_FAILED", missing: "ERR_LOCK_REFRESHING_FIELDS_MISSING",
	},
	{
		method: http.MethodDelete, path: "/v1/lock/retire", id: "api.lock.retire", doing: "Retiring", run: (*server).retire,
		failed: "ERR_LOCK_RETIRING_FAILED", missing: "ERR_LOCK_RETIRING_FIELDS_MISSING",
	},
	{
		method: http.MethodPost, path: "/v1/lock/list", id: "api.lock.list", doing: "Listing", run: (*server).list,
		failed: "ERR_LISTING_LOCK_FAILED", missing: "ERR_LISTING_LOCK_FAILED", withoutUser: true,
	},
	{
		method: http.MethodDelete, path: "/v1/lock/force", id: "api.lock.force", doing: "Forcing", run: (*server).force,
		failed: "ERR_LOCK_FORCING_FAILED", missing: "ERR_LOCK_FORCING_FIELDS_MISSING", withoutDevice: true,
	},
	{
		method: http.MethodPost, path: "/v1/lock/request", id: "api.lock.request", doing: "Requesting", run: (*server).request,
		failed: "ERR_LOCK_REQUESTING_FAILED", missing: "ERR_LOCK_REQUESTING_FIELDS_MISSING", withoutDevice: true,
	},
}

// call is one request of an operation.
type call struct {
	*operation
	header  http.Header
	user    caller
	device  string
	message message
}

// fail returns a refusal with the operation's code.
func (c *call) fail(status int, text string) error { return failure{status, c.failed, text} }

// ServeHTTP implements http.Handler. If tokens identify the users, every origin may call: a page
// of another site has no token. A header that is believed allows no such page.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.checkPage == nil {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Allow-Methods", "GET, HEAD, PUT, PATCH, POST, DELETE, OPTIONS")
		h.Set("Access-Control-Allow-Headers", "*")
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusOK)
			return
		}
	}
	method := r.Method
	if override := strings.ToUpper(r.Header.Get("X-Http-Method-Override")); method == http.MethodPost && override != "" {
		method = override
	}
	i := slices.IndexFunc(operations, func(op operation) bool { return op.path == r.URL.Path && op.method == method })
	if i < 0 {
		e := newEnvelope("api.lock")
		e.fail(failure{http.StatusNotFound, "ERR_LOCK_ROUTE_NOT_FOUND", "There is no such route"})
		s.write(r.Context(), w, &e, http.StatusNotFound)
		return
	}
	s.serve(w, r, &operations[i])
}

// serve answers a request of an operation.
func (s *server) serve(w http.ResponseWriter, r *http.Request, op *operation) {
	// A change does not end with its client: editors send retire while they close a page.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), requestTimeout)
	defer cancel()
	c := &call{operation: op, header: r.Header, device: r.Header.Get(deviceHeader)}
	result, err := s.perform(ctx, w, r, c)
	e, status := newEnvelope(op.id), http.StatusOK
	id := cmp.Or(r.Header.Get(msgIDHeader), c.message.messageID())
	if id == "" && err == nil {
		id = uuid.NewString()
	}
	if id != "" {
		e.Params.MessageID = &id
	}
	if result, ok := result.(streamed); ok {
		var sent bool
		if sent, err = e.stream(ctx, w, result); sent && err != nil {
			s.Log.DebugContext(ctx, "an answer was cut off", "err", err)
			panic(http.ErrAbortHandler) // the client would take the part for the whole
		} else if err == nil {
			return
		}
	}
	if err == nil {
		e.Result = result
	} else {
		f := s.toFailure(ctx, c, err)
		status = f.status
		e.fail(f)
	}
	s.write(ctx, w, &e, status)
}

// perform judges a request in the order of the protocol.
func (s *server) perform(ctx context.Context, w http.ResponseWriter, r *http.Request, c *call) (result any, err error) {
	defer fault.Recover(&err)
	if s.checkPage != nil {
		if err := s.checkPage(r); err != nil {
			return nil, c.fail(http.StatusForbidden, fault.Text(err))
		}
	}
	if !c.withoutUser {
		if c.user, err = s.identify(r.Header); err != nil {
			return nil, err
		}
	}
	if c.device == "" && !c.withoutDevice {
		return nil, c.fail(http.StatusBadRequest, "X-device-Id is missing in headers")
	}
	if !utf8.ValidString(c.device) { // a lock's value, which is JSON, would change it
		return nil, c.fail(http.StatusBadRequest, "X-device-Id is not valid UTF-8")
	}
	c.message, err = parseMessage(w, r)
	if err != nil {
		return nil, failure{http.StatusBadRequest, c.missing, err.Error()}
	}
	return c.run(s, ctx, c)
}

// toFailure returns a refusal, or what became of a fault of the engine.
func (s *server) toFailure(ctx context.Context, c *call, err error) failure {
	var f failure
	switch {
	case errors.As(err, &f):
		return f
	case fault.Is(err, fault.Invalid):
		return failure{http.StatusBadRequest, c.missing, fault.Text(err)}
	}
	if panicked, ok := errors.AsType[*fault.PanicError](err); ok {
		s.Log.ErrorContext(ctx, "panic", append(panicked.LogAttrs(), "operation", c.id)...)
	} else {
		s.Log.Log(ctx, engine.LevelOf(err, s.CountRefusal), "a request failed", "operation", c.id, "err", err)
	}
	return failure{http.StatusInternalServerError, c.failed, c.doing + " lock failed"}
}

func (s *server) write(ctx context.Context, w http.ResponseWriter, e *envelope, status int) {
	if err := e.write(w, status); err != nil {
		s.Log.DebugContext(ctx, "an answer was not sent", "err", err)
	}
}
