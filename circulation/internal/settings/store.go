package settings

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

const (
	// maxAge is how old the settings that Current returns may be: half of the two
	// seconds within which a change is in force everywhere.
	maxAge = time.Second
	// readTimeout bounds one reading of the settings when good ones are known, which
	// are used instead. A check-out waits for it.
	readTimeout = 2 * time.Second
	// firstReadTimeout bounds a reading while nothing good is known of the tenant. It
	// is that of any other call to storage: a check-out that gave up earlier could
	// only fail, since the environment's settings alone have no version.
	firstReadTimeout = 10 * time.Second
	// logEvery is how often the log repeats that a tenant's settings are unusable.
	logEvery = 10 * time.Second
	// maxTenants bounds the tenants remembered.
	maxTenants = 1000
)

// Storage keeps each tenant's settings entry; the tenant is in the context.
type Storage interface {
	State(ctx context.Context) (schemas.LockSettingsState, error)
	// Put replaces the entry's value, and keeps who did it and why. A version other
	// than "" that is not the stored one is a Conflict.
	Put(ctx context.Context, change schemas.LockSettingsChange) (schemas.LockSettingsState, error)
	// Announce says what this instance's environment says, and returns the state that
	// follows. "On" that is based on another version than the stored one is a Conflict.
	Announce(ctx context.Context, e schemas.LockEnvironment) (schemas.LockSettingsState, error)
}

// Reasons why other settings are in force than those configured, as the metrics count
// them.
const (
	ReasonUnreadable         = "storage_unreadable"
	ReasonMalformed          = "entry_malformed"
	ReasonNotAnnounced       = "environment_not_announced"
	ReasonEnvironmentDiffers = "environment_differs"
)

// Reasons returns all of them.
func Reasons() []string {
	return []string{ReasonUnreadable, ReasonMalformed, ReasonNotAnnounced, ReasonEnvironmentDiffers}
}

// Store knows the settings in force for each tenant.
//
// When storage cannot be read, or holds an entry that makes no sense, the last
// good values stay in force, else the environment's; that is logged as an error
// and counted. So a failure never switches the feature off by itself.
type Store struct {
	storage Storage
	env     Environment
	log     *slog.Logger
	report  func(reason string)

	mu       sync.Mutex
	tenants  map[okapi.Tenant]*known
	readings uint64
}

// known is what is remembered of a tenant.
type known struct {
	settings Settings
	entry    schemas.LockSettings // of the tenant's own, as last read well
	reading  uint64               // the number of the reading that the settings come from
	begun    time.Time            // when that began
	good     bool                 // false until the tenant's own settings were read
	logged   time.Time            // when a failure was last logged
	differed time.Time            // when another instance's environment was last logged
	underway *reading             // nil while Current starts no reading
}

// reading is one under way, for those who wait for it.
type reading struct {
	done   chan struct{}
	result Settings
}

// NewStore returns the settings of all tenants. report is called with a reason for
// each reading after which other settings are in force than those configured.
func NewStore(storage Storage, env Environment, log *slog.Logger, report func(reason string)) *Store {
	return &Store{storage: storage, env: env, log: log, report: report, tenants: map[okapi.Tenant]*known{}}
}

// Current returns the settings of the tenant in ctx, at most a second old.
// Callers at the same time share one reading, which does not end with the caller
// that began it.
func (s *Store) Current(ctx context.Context) Settings {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return s.env.Settings()
	}
	s.mu.Lock()
	k := s.of(id)
	// Settings without a version cannot be acted on, so they do not count as known.
	if k.settings.Version != "" && time.Since(k.begun) < maxAge {
		defer s.mu.Unlock()
		return k.settings
	}
	r := k.underway
	if r == nil {
		r = &reading{done: make(chan struct{})}
		k.underway = r
		go func() {
			defer close(r.done)
			r.result = s.Refresh(ctx)
			s.mu.Lock()
			defer s.mu.Unlock()
			k.underway = nil
		}()
	}
	s.mu.Unlock()
	select {
	case <-r.done:
		return r.result
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.lastGood(k)
	}
}

// Refresh asks storage and returns the settings of the tenant in ctx.
func (s *Store) Refresh(ctx context.Context) Settings {
	settings, _, err := s.read(ctx)
	if err != nil {
		id, _ := okapi.TenantFrom(ctx) // no tenant: settings of nobody
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.lastGood(s.of(id))
	}
	return settings
}

// Read is Refresh for whoever wants to know: it fails when storage cannot be
// read, and returns as problem why the tenant's entry is not in force, nil when
// it is.
func (s *Store) Read(ctx context.Context) (settings Settings, problem, err error) {
	return s.read(ctx)
}

// Update replaces the tenant's own settings. Fields that change leaves nil fall
// back to the environment's. A Version other than "" that is not the stored one is
// a Conflict. The result is in force in this process when Update returns, and
// everywhere else within two seconds.
func (s *Store) Update(ctx context.Context, change Change) (Settings, error) {
	value, err := change.Value()
	if err != nil {
		return Settings{}, err
	}
	state, err := s.storage.Put(ctx, schemas.LockSettingsChange{
		Value: value, Version: change.Version, Reason: change.Reason, ByName: change.ByName,
	})
	if err != nil {
		return Settings{}, fmt.Errorf("storing the lock settings: %w", err)
	}
	// Numbered now: a reading that began before the change must not undo it.
	settings, _, err := s.learn(ctx, state, s.number(), time.Now())
	return settings, err
}

// read asks storage and remembers the answer. It does not end with the caller,
// whose leaving says nothing about storage.
func (s *Store) read(ctx context.Context) (settings Settings, problem, err error) {
	begun, number := time.Now(), s.number()
	rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.patience(ctx))
	defer cancel()
	state, err := s.storage.State(rctx)
	if err == nil {
		return s.learn(ctx, state, number, begun)
	}
	if fault.Is(err, fault.UnknownTenant) { // a caller's mistake and no outage
		return Settings{}, nil, err
	}
	id, _ := okapi.TenantFrom(ctx) // no tenant: nobody's settings
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.of(id)
	if number > k.reading {
		// What is known counts as fresh, so that an outage costs one reading a
		// second and not one for each check-out.
		k.reading, k.begun = number, begun
	}
	s.complain(ctx, k, ReasonUnreadable, unusable, err)
	return Settings{}, nil, fmt.Errorf("reading the lock settings: %w", err)
}

// patience is how long a reading for the tenant in ctx may take.
func (s *Store) patience(ctx context.Context) time.Duration {
	id, _ := okapi.TenantFrom(ctx) // without a tenant nothing is known
	s.mu.Lock()
	defer s.mu.Unlock()
	if k, ok := s.tenants[id]; ok && k.good {
		return readTimeout
	}
	return firstReadTimeout
}

// learn makes the settings out of what storage answered and remembers them,
// unless a later reading was faster. Storage hears first what the environment says
// if that matters.
func (s *Store) learn(ctx context.Context, state schemas.LockSettingsState, number uint64, begun time.Time) (settings Settings, problem, err error) {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return Settings{}, nil, err
	}
	state, unheard := s.announce(ctx, state)
	entry, problem := s.entry(ctx, state)
	settings = s.env.merge(entry).under(state)
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.of(id)
	if problem != nil {
		s.complain(ctx, k, ReasonMalformed, unusable, problem)
	}
	switch {
	case settings.EnabledSource == FromOtherInstance:
		s.follow(ctx, k)
	case unheard != nil && settings.Enabled && !settings.Announced:
		s.complain(ctx, k, ReasonNotAnnounced, unannounced, unheard)
	}
	if number > k.reading {
		k.settings, k.entry, k.reading, k.begun = settings, entry, number, begun
		k.good = k.good || problem == nil
	}
	return settings, problem, nil
}

// What complain logs.
const (
	unusable    = "the tenant's check-out lock settings cannot be used"
	unannounced = "storage does not know that this instance's environment turns the check-out lock on: " +
		"an instance whose environment turns it off lends without the lock"
)

// complain counts and logs that settings cannot be used as configured. s.mu is held.
func (s *Store) complain(ctx context.Context, k *known, reason, what string, cause error) {
	s.report(reason)
	if time.Since(k.logged) < logEvery {
		return
	}
	k.logged = time.Now()
	using := "environment"
	if k.good {
		using = "last good"
	}
	level := slog.LevelError
	if fault.Is(cause, fault.Unavailable) { // storage logs its outage itself
		level = slog.LevelWarn
	}
	s.log.Log(ctx, level, what, "reason", reason, "using", using, "enabled", s.lastGood(k).Enabled, "err", cause)
}

// number counts the readings in the order in which they begin.
func (s *Store) number() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readings++
	return s.readings
}

// lastGood returns the settings to use in want of better. s.mu is held.
func (s *Store) lastGood(k *known) Settings {
	if k.settings.Version != "" {
		return k.settings
	}
	return s.env.Settings()
}

// of returns what is known of the tenant. s.mu is held.
func (s *Store) of(id okapi.Tenant) *known {
	k, ok := s.tenants[id]
	if !ok {
		if len(s.tenants) >= maxTenants {
			s.forgetOne()
		}
		k = &known{}
		s.tenants[id] = k
	}
	return k
}

// forgetOne makes room: it drops a tenant of which nothing good is known (the
// name may be anybody's invention), else the one read longest ago.
func (s *Store) forgetOne() {
	var victim okapi.Tenant
	var oldest *known
	for id, k := range s.tenants {
		if oldest == nil || !k.good && oldest.good || k.good == oldest.good && k.begun.Before(oldest.begun) {
			victim, oldest = id, k
		}
	}
	delete(s.tenants, victim)
}
