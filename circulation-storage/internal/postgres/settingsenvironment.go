package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// The statements on the announcements of instances. Renewing needs no lock, since it
// changes nothing that a check-out acts on. Turning on_until from NULL to a time and back
// needs the table lock of the settings.
const (
	// An announcement of the far future does not count: the clock was set back since.
	announcedSQL = `(a.on_until > clock_timestamp() AND a.on_until <= clock_timestamp() + 2 * $1::bigint * interval '1 ms')`

	renewAnnouncementSQL = `
UPDATE {schema}.check_out_lock_environment a SET on_until = clock_timestamp() + $1::bigint * interval '1 ms'
 WHERE a.on_until IS NOT NULL RETURNING true`
	beginAnnouncementSQL = `
UPDATE {schema}.check_out_lock_environment a SET on_until = clock_timestamp() + $1::bigint * interval '1 ms'
  FROM {schema}.lock_settings_version v
 WHERE a.on_until IS NULL AND v.version::text = $2::text RETURNING true`
	endAnnouncementSQL = `
UPDATE {schema}.check_out_lock_environment a SET on_until = NULL
 WHERE a.on_until IS NOT NULL AND NOT ` + announcedSQL + ` RETURNING true`
	dropAnnouncementSQL = `UPDATE {schema}.check_out_lock_environment SET on_until = NULL WHERE on_until IS NOT NULL`
)

// Announce notes the setting in the environment of the named instance, for a tenant whose
// own settings do not decide, and returns the new state. "On" holds for
// schemas.LockEnvironmentLeaseMs. "Off" has an effect only after the last "on" has lapsed.
// When on turns to off or off to on, the version rises, which refuses every check-out that
// acted on the old state. Fault: Conflict if "on" is based on another version than the
// stored one.
func (s *LockSettingsStore) Announce(ctx context.Context, e schemas.LockEnvironment, instance string) (schemas.LockSettingsState, error) {
	renewed := false
	if e.Enabled {
		var err error
		if renewed, err = s.renewAnnouncement(ctx); err != nil {
			return schemas.LockSettingsState{}, err
		}
	}
	if !renewed {
		if err := s.turnAnnouncement(ctx, e, instance); err != nil {
			return schemas.LockSettingsState{}, err
		}
	}
	return s.State(ctx)
}

func (s *LockSettingsStore) renewAnnouncement(ctx context.Context) (bool, error) {
	n, err := s.db.exec(ctx, s.db.urgent, "announcing the environment's lock setting again", renewAnnouncementSQL, schemas.LockEnvironmentLeaseMs)
	return n > 0, err
}

// turnAnnouncement begins or ends the announcements. It waits for the check-outs
// that are committing, as a change of the settings does.
func (s *LockSettingsStore) turnAnnouncement(ctx context.Context, e schemas.LockEnvironment, instance string) error {
	turned := 0
	err := s.db.inTx(ctx, "announcing the environment's lock setting", func(tx pgx.Tx) error {
		err := lockSettingsTable(ctx, tx)
		if err != nil {
			return err
		}
		if e.Enabled {
			turned, err = beginAnnouncement(ctx, tx, e.Version)
		} else {
			turned, err = runStatement(ctx, tx, endAnnouncementSQL, schemas.LockEnvironmentLeaseMs)
		}
		if err != nil || turned == 0 {
			return err
		}
		_, err = runStatement(ctx, tx, raiseVersionSQL)
		return err
	})
	if err == nil && turned > 0 {
		s.db.log.InfoContext(ctx, "the environment of instances turns the check-out lock for a tenant without a setting of its own",
			"on", e.Enabled, "instance", instance)
	}
	return err
}

// beginAnnouncement returns 1 if the announcement is the first one, and 0 if another
// instance was faster.
func beginAnnouncement(ctx context.Context, tx pgx.Tx, version string) (int, error) {
	begun, err := runStatement(ctx, tx, beginAnnouncementSQL, schemas.LockEnvironmentLeaseMs, version)
	if err != nil || begun > 0 {
		return begun, err
	}
	renewed, err := runStatement(ctx, tx, renewAnnouncementSQL, schemas.LockEnvironmentLeaseMs)
	if err == nil && renewed == 0 {
		err = fault.New(fault.Conflict, "The lock settings no longer have version %s: read them again", fault.Shown(version))
	}
	return 0, err
}
