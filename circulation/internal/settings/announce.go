package settings

import (
	"context"
	"errors"
	"fmt"
	"time"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// A tenant's entry may leave open whether the lock is on. Then the environments of all
// instances count, and the stricter one wins. An instance whose environment turns the lock
// on announces that to storage before it lends, and renews the announcement. An instance
// whose environment turns it off follows while an announcement is stored, and ends one that
// has lapsed. Storage raises the version of the settings when an announcement begins or
// ends. Every commit under such settings shows the version, so storage refuses a commit
// that acted on the state before.

const (
	// renewBelowMs is the remaining time below which an announcement is renewed.
	renewBelowMs = schemas.LockEnvironmentLeaseMs / 2
	// announceTimeout bounds an announcement while none is stored. It is as long as for any
	// other call, since storage first waits for the commits that are under way.
	announceTimeout = 10 * time.Second
	// announceTries is how often the settings may change while an instance announces.
	announceTries = 3
)

var errKeepsChanging = errors.New("the settings keep changing")

// withAnnouncement applies a stored announcement to the settings of tenant and environment.
func (s Settings) withAnnouncement(state schemas.LockSettingsState) Settings {
	s.Version = state.Version
	if state.EnvironmentOnMs == nil {
		return s
	}
	s.Announced = true
	if !s.Enabled {
		s.Enabled, s.EnabledSource = true, FromOtherInstance
	}
	return s
}

// needsAnnouncement reports whether the environment's switch must be announced to storage before
// check-outs may use own, the settings of tenant and environment.
func needsAnnouncement(own Settings, state schemas.LockSettingsState) bool {
	left := state.EnvironmentOnMs
	if own.Enabled {
		return own.EnabledSource == FromEnvironment && (left == nil || *left < renewBelowMs)
	}
	return left != nil && *left == 0
}

// announce sends the environment's switch to storage if needed, and returns the new state.
// After an error it returns the old one, which check-outs may use: they acquire the lock.
// Only the check-outs of other instances may lend without it.
func (s *Store) announce(ctx context.Context, state schemas.LockSettingsState) (schemas.LockSettingsState, error) {
	timeout := announceTimeout
	if state.EnvironmentOnMs != nil {
		timeout = readTimeout
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	for range announceTries {
		entry, _ := s.readEntry(ctx, state)
		own := s.env.Merge(entry)
		if !needsAnnouncement(own, state) {
			return state, nil
		}
		next, err := s.storage.Announce(ctx, schemas.LockEnvironment{Enabled: own.Enabled, Version: state.Version})
		if fault.Is(err, fault.Conflict) {
			next, err = s.storage.State(ctx)
		}
		if err != nil {
			return state, fmt.Errorf("announcing the environment's lock setting: %w", err)
		}
		state = next
	}
	return state, errKeepsChanging
}

// readEntry reads the tenant's entry. problem is why it returns the last good one in place of
// the stored one.
func (s *Store) readEntry(ctx context.Context, state schemas.LockSettingsState) (entry schemas.LockSettings, problem error) {
	if entry, problem = schemas.ParseLockSettingsEntry(state.Entry); problem == nil {
		return entry, nil
	}
	id, _ := okapi.TenantFrom(ctx) // without a tenant nothing is stored
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.getKnown(id).entry, problem
}

// noteOtherInstance counts and logs that another instance's environment decides. s.mu is held.
func (s *Store) noteOtherInstance(ctx context.Context, k *known) {
	s.report(ReasonEnvironmentDiffers)
	if time.Since(k.differed) < logEvery {
		return
	}
	k.differed = time.Now()
	s.log.WarnContext(ctx, "another instance's environment turns the check-out lock on, and this one's turns it off: this one takes the lock too; "+
		"set CHECKOUT_LOCK_FEATURE_ENABLED alike on all instances, or turn the lock on or off for the tenant", "reason", ReasonEnvironmentDiffers)
}
