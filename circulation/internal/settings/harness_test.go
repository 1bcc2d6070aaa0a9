package settings_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

var environment = settings.Environment{
	TTL: 3 * time.Second, Waits: []time.Duration{500 * time.Millisecond, time.Second},
}

// storage is a fake Storage for one tenant.
type storage struct {
	mu      sync.Mutex
	value   string // of the entry; "" is no entry
	version int
	err     error
	delay   time.Duration // between reading and answering
	reads   int
	changed schemas.LockSettingsChange // the last one

	onUntil       time.Time // of the announcement; zero is none
	announced     []string  // what instances announced, with the version
	announceErr   error
	announceDelay time.Duration
}

func (s *storage) State(ctx context.Context) (schemas.LockSettingsState, error) {
	s.mu.Lock()
	s.reads++
	state, err, delay := s.state(), s.err, s.delay
	s.mu.Unlock()
	select {
	case <-time.After(delay):
		return state, err
	case <-ctx.Done():
		return schemas.LockSettingsState{}, ctx.Err()
	}
}

func (s *storage) state() schemas.LockSettingsState {
	state := schemas.LockSettingsState{Version: fmt.Sprint(s.version)}
	if s.value != "" {
		state.Entry = json.RawMessage(`{"id":"1","scope":"mod-circulation","key":"checkoutLockFeature","value":` + s.value +
			`}`)
	}
	if !s.onUntil.IsZero() {
		left := max(0, time.Until(s.onUntil).Milliseconds())
		state.EnvironmentOnMs = &left
	}
	return state
}

// Announce does what storage does; announceDelay passes before.
func (s *storage) Announce(ctx context.Context, e schemas.LockEnvironment) (schemas.LockSettingsState, error) {
	s.mu.Lock()
	s.announced = append(s.announced, fmt.Sprint(e.Enabled, " ", e.Version))
	err, delay := s.announceErr, s.announceDelay
	s.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return schemas.LockSettingsState{}, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		return schemas.LockSettingsState{}, err
	case !e.Enabled && !s.onUntil.IsZero() && !time.Now().Before(s.onUntil):
		s.onUntil = time.Time{}
		s.version++
	case e.Enabled && s.onUntil.IsZero() && e.Version != fmt.Sprint(s.version):
		return schemas.LockSettingsState{}, fault.New(fault.Conflict, "changed")
	case e.Enabled:
		if s.onUntil.IsZero() {
			s.version++
		}
		s.onUntil = time.Now().Add(time.Duration(schemas.LockEnvironmentLeaseMs) * time.Millisecond)
	}
	return s.state(), nil
}

// announcements returns the announcements since its last call.
func (s *storage) announcements() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.announced
	s.announced = nil
	return all
}

// Put does what storage does.
func (s *storage) Put(_ context.Context, change schemas.LockSettingsChange) (schemas.LockSettingsState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if change.Version != "" && change.Version != fmt.Sprint(s.version) {
		return schemas.LockSettingsState{}, fault.New(fault.Conflict, "changed")
	}
	s.value, s.changed = string(change.Value), change
	s.version++
	if own, err := schemas.ParseLockSettings(change.Value); err == nil && own.Enabled != nil {
		s.onUntil = time.Time{}
	}
	return s.state(), s.err
}

// set changes the entry without the store, as another instance does.
func (s *storage) set(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value = value
	s.version++
}

func (s *storage) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *storage) timesRead() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

// harness is a store with its storage, log and counters.
type harness struct {
	*settings.Store
	storage   *storage
	log       *bytes.Buffer
	fallbacks map[string]int
}

func newHarness(value string) *harness {
	return (&storage{value: value, version: 1}).harness(environment)
}

// harness is a store of its own on s, as another instance has.
func (s *storage) harness(e settings.Environment) *harness {
	b := &harness{storage: s, log: &bytes.Buffer{}, fallbacks: map[string]int{}}
	b.Store = settings.NewStore(b.storage, e, slog.New(slog.NewTextHandler(b.log, nil)),
		func(reason string) { b.fallbacks[reason]++ })
	return b
}

func inTenant(t *testing.T, name string) context.Context {
	t.Helper()
	id, err := okapi.ParseTenant(name)
	if err != nil {
		t.Fatal(err)
	}
	return okapi.WithTenant(t.Context(), id)
}
