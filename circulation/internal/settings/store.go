package settings

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"checkoutlock/circulation/internal/cache"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

const (
	// maxAge is how old the settings that Current returns may be: half of the two
	// seconds within which a change is in force everywhere.
	maxAge = time.Second
	// readTimeout bounds one reading of the settings if good ones are known, which
	// replace it. A check-out waits for it.
	readTimeout = 2 * time.Second
	// firstReadTimeout bounds a reading while no good settings of the tenant are known.
	// It is that of any other call to storage: a check-out that stopped waiting earlier
	// would fail, since the environment's settings alone have no version.
	firstReadTimeout = 10 * time.Second
	// logEvery is how often the log repeats that a tenant's settings are unusable.
	logEvery = 10 * time.Second
	// listAge is how long ListEnabled lists a reading. It is below the time after which the alert
	// FeatureDiffers fires, so that no instance that idles during a change fires it.
	listAge = 4 * time.Minute
	// maxTenants bounds the tenants remembered.
	maxTenants = 1000
)

// Storage keeps each tenant's settings entry; the tenant is in the context.
type Storage interface {
	State(ctx context.Context) (schemas.LockSettingsState, error)
	// Put replaces the entry's value, and keeps the user and the reason. A version other
	// than "" that is not the stored one is a Conflict.
	Put(ctx context.Context, change schemas.LockSettingsChange) (schemas.LockSettingsState, error)
	// Announce stores this instance's environment and returns the new state. "On" that is
	// based on another version than the stored one is a Conflict.
	Announce(ctx context.Context, e schemas.LockEnvironment) (schemas.LockSettingsState, error)
}

// Reasons why settings other than the configured ones are in force, as the metrics count
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

// Store keeps the settings in force for each tenant.
//
// If storage cannot be read, or its entry is invalid, the last good values stay in force,
// else the environment's. The store logs that as an error and counts it. So a failure alone
// never switches the feature off.
type Store struct {
	storage Storage
	env     Environment
	log     *slog.Logger
	report  func(reason string)
	// readings are the readings under way, which callers of Current share.
	readings *cache.Cache[okapi.Tenant, Settings]

	numbered atomic.Uint64 // readings, in the order in which they begin

	mu      sync.Mutex
	tenants map[okapi.Tenant]*known
}

// known is the store's state of a tenant.
type known struct {
	settings Settings
	entry    schemas.LockSettings // the tenant's own, from the last good reading
	reading  uint64               // the number of the reading that gave the settings
	begun    time.Time            // when that reading began, or failed
	good     bool                 // false until the tenant's own settings were read
	logged   time.Time            // when a failure was last logged
	differed time.Time            // when another instance's environment was last logged
}

// NewStore returns a store for all tenants. It calls report with a reason for each reading
// after which settings other than the configured ones are in force.
func NewStore(storage Storage, env Environment, log *slog.Logger, report func(reason string)) *Store {
	return &Store{
		storage: storage, env: env, log: log, report: report,
		readings: cache.New[okapi.Tenant, Settings](0, maxTenants), tenants: map[okapi.Tenant]*known{},
	}
}

// Current returns the settings of the tenant in ctx, at most a second old.
// Callers at the same time share one reading, which does not end with the caller
// that began it.
func (s *Store) Current(ctx context.Context) Settings {
	id, _ := okapi.TenantFrom(ctx) // the zero tenant has no settings
	if current, ok := s.getFresh(id); ok {
		return current
	}
	current, err := s.readings.Get(ctx, id, func(ctx context.Context, _ Settings) (Settings, error) {
		return s.Refresh(ctx), nil
	})
	if err != nil { // the caller left
		return s.getLastGood(id)
	}
	return current
}

// getFresh returns the settings of the tenant; false if they must be read.
func (s *Store) getFresh(id okapi.Tenant) (Settings, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.getKnown(id)
	// A commit needs a version, so settings without one do not count as known.
	return k.settings, k.settings.Version != "" && time.Since(k.begun) < maxAge
}

// Refresh reads storage and returns the settings of the tenant in ctx.
func (s *Store) Refresh(ctx context.Context) Settings {
	settings, _, err := s.Read(ctx)
	if err != nil {
		id, _ := okapi.TenantFrom(ctx) // the zero tenant has no settings
		return s.getLastGood(id)
	}
	return settings
}

func (s *Store) getLastGood(id okapi.Tenant) Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastGood(s.getKnown(id))
}

// Update replaces the tenant's own settings. Fields that change leaves nil fall
// back to the environment's. A Version other than "" that is not the stored one is
// a Conflict. The result is in force in this process when Update returns, and
// everywhere else within two seconds.
func (s *Store) Update(ctx context.Context, change Change) (Settings, error) {
	value, err := change.Own.Value()
	if err != nil {
		return Settings{}, err
	}
	state, err := s.storage.Put(ctx, schemas.LockSettingsChange{
		Value: value, Version: change.Version, Reason: change.Reason, ByName: change.ByName,
	})
	if err != nil {
		return Settings{}, fmt.Errorf("storing the lock settings: %w", err)
	}
	// The number is taken now: a reading that began before the change must not undo it.
	settings, _, err := s.applyState(ctx, state, s.numbered.Add(1), time.Now())
	return settings, err
}

// Read is Refresh with errors: it fails if storage cannot be read, and returns as problem why
// the tenant's entry is not in force, nil if it is. It does not end with the caller, so the
// failure of a reading is always storage's.
func (s *Store) Read(ctx context.Context) (settings Settings, problem, err error) {
	begun, number := time.Now(), s.numbered.Add(1)
	rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.chooseTimeout(ctx))
	defer cancel()
	state, err := s.storage.State(rctx)
	if err == nil {
		return s.applyState(ctx, state, number, begun)
	}
	if fault.Is(err, fault.UnknownTenant) { // a caller's mistake, not an outage
		return Settings{}, nil, err
	}
	id, _ := okapi.TenantFrom(ctx) // the zero tenant has no settings
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.getKnown(id)
	if number > k.reading {
		// The known settings count as fresh from now on, so that an outage costs one reading
		// a second and not one for each check-out, also if each takes its whole time-out.
		k.reading, k.begun = number, time.Now()
	}
	s.noteFallback(ctx, k, ReasonUnreadable, unusable, err)
	return Settings{}, nil, fmt.Errorf("reading the lock settings: %w", err)
}

// chooseTimeout returns how long a reading for the tenant in ctx may take.
func (s *Store) chooseTimeout(ctx context.Context) time.Duration {
	id, _ := okapi.TenantFrom(ctx) // without a tenant nothing is known
	s.mu.Lock()
	defer s.mu.Unlock()
	if k, ok := s.tenants[id]; ok && k.good {
		return readTimeout
	}
	return firstReadTimeout
}

// applyState makes the settings from storage's answer and keeps them, unless a later reading was
// faster. First it announces the environment to storage if needed.
func (s *Store) applyState(ctx context.Context, state schemas.LockSettingsState, number uint64, begun time.Time) (settings Settings, problem, err error) {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return Settings{}, nil, err
	}
	state, announceErr := s.announce(ctx, state)
	entry, problem := s.readEntry(ctx, state)
	settings = s.env.Merge(entry).withAnnouncement(state)
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.getKnown(id)
	if problem != nil {
		s.noteFallback(ctx, k, ReasonMalformed, unusable, problem)
	}
	switch {
	case settings.EnabledSource == FromOtherInstance:
		s.noteOtherInstance(ctx, k)
	case announceErr != nil && settings.Enabled && !settings.Announced:
		s.noteFallback(ctx, k, ReasonNotAnnounced, unannounced, announceErr)
	}
	if number > k.reading {
		k.settings, k.entry, k.reading, k.begun = settings, entry, number, begun
		k.good = k.good || problem == nil
	}
	return settings, problem, nil
}

// The messages of noteFallback.
const (
	unusable    = "the tenant's check-out lock settings cannot be used"
	unannounced = "storage does not know that this instance's environment turns the check-out lock on: " +
		"an instance whose environment turns it off lends without the lock"
)

// noteFallback counts and logs that settings cannot be used as configured. s.mu is held.
func (s *Store) noteFallback(ctx context.Context, k *known, reason, what string, cause error) {
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
	if fault.Is(cause, fault.Unavailable) || fault.Is(cause, fault.Timeout) { // an outage, which storage logs itself
		level = slog.LevelWarn
	}
	s.log.Log(ctx, level, what, "reason", reason, "using", using, "enabled", s.lastGood(k).Enabled, "err", cause)
}

// lastGood returns the last good settings, else the environment's. s.mu is held.
func (s *Store) lastGood(k *known) Settings {
	if k.settings.Version != "" {
		return k.settings
	}
	return s.env.Settings()
}

// ListEnabled returns whether the lock is on, by tenant, as of the readings of the last minutes. It leaves
// out tenants whose own settings were never read, whose names may be invented.
func (s *Store) ListEnabled() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	enabled := map[string]bool{}
	for id, k := range s.tenants {
		if k.good && time.Since(k.begun) < listAge {
			enabled[id.String()] = k.settings.Enabled
		}
	}
	return enabled
}

// getKnown returns the state of the tenant. s.mu is held.
func (s *Store) getKnown(id okapi.Tenant) *known {
	k, ok := s.tenants[id]
	if !ok {
		if len(s.tenants) >= maxTenants {
			s.dropOne()
		}
		k = &known{}
		s.tenants[id] = k
	}
	return k
}

// dropOne drops a tenant without good settings, whose name may be invented, else the one
// read longest ago. s.mu is held.
func (s *Store) dropOne() {
	var victim okapi.Tenant
	var oldest *known
	for id, k := range s.tenants {
		if oldest == nil || !k.good && oldest.good || k.good == oldest.good && k.begun.Before(oldest.begun) {
			victim, oldest = id, k
		}
	}
	delete(s.tenants, victim)
}
