package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/database"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
	"checkoutlock/schemas/okapi"
)

// LockSettingsStore keeps each tenant's settings of the check-out lock: the entry
// among its settings, and the version that every change of it raises. A change raises
// the version first. So it waits for check-outs that are committing without a lock, and
// later ones are refused.
type LockSettingsStore struct{ db *DB }

// NewLockSettingsStore returns the lock settings of all tenants in db.
func NewLockSettingsStore(db *DB) *LockSettingsStore { return &LockSettingsStore{db: db} }

const (
	// The condition is that of the unique index, so that PostgreSQL uses it.
	isLockSettings = `e.jsonb->>'scope' = '` + schemas.LockSettingsScope + `' AND e.jsonb->>'key' = '` + schemas.LockSettingsKey + `'
   AND coalesce(e.jsonb->>'userId', '') = ''`

	settingsStateSQL = `
SELECT v.version::text, e.jsonb::text,
       CASE WHEN a.on_until IS NULL THEN NULL
            WHEN ` + announcedSQL + ` THEN greatest(1, ceil(extract(epoch FROM a.on_until - clock_timestamp()) * 1000)::bigint)
            ELSE 0 END
  FROM {schema}.lock_settings_version v JOIN {schema}.check_out_lock_environment a USING (only_row) LEFT JOIN {schema}.settings_entry e ON ` + isLockSettings
	// It locks the table and not the row: PostgreSQL grants table locks in the order of
	// asking, and a row that check-outs share all the time is never free. Plain reads
	// pass. Check-outs that share the row wait, and are waited for.
	//
	// While it waits, commits queue after it. So it gives up early, lets them pass and
	// tries again. Four attempts take less than 5 s together, and longer than a frozen
	// commit lives.
	lockSettingsTableSQL = `SET LOCAL lock_timeout = '1200ms'; LOCK TABLE {schema}.lock_settings_version IN EXCLUSIVE MODE`
	readVersionSQL       = `SELECT version::text FROM {schema}.lock_settings_version`
	// The step is random: if a failover loses a change, no other change makes the lost version again.
	raiseVersionSQL       = `UPDATE {schema}.lock_settings_version SET version = version + 1 + floor(random() * 1000000000)::bigint`
	writeSettingsEntrySQL = `
INSERT INTO {schema}.settings_entry (id, jsonb) VALUES ($1::uuid, $2::jsonb)
ON CONFLICT ON CONSTRAINT settings_entry_pkey DO UPDATE SET jsonb = excluded.jsonb`
	removeSettingsEntrySQL = `DELETE FROM {schema}.settings_entry e WHERE ` + isLockSettings
)

// State returns the entry, if there is one, and the version, as of one moment.
func (s *LockSettingsStore) State(ctx context.Context) (schemas.LockSettingsState, error) {
	var state schemas.LockSettingsState
	err := s.db.lookUpRow(ctx, s.db.conns.Urgent, "reading the lock settings", settingsStateSQL, []any{schemas.LockEnvironmentLeaseMs},
		&state.Version, &state.Entry, &state.EnvironmentOnMs)
	return state, err
}

// Change implements httpapi.LockSettingsStore. It keeps the id of a stored entry. Its faults are
// Conflict and those of the entry's rules.
func (s *LockSettingsStore) Change(ctx context.Context, change schemas.LockSettingsChange) (schemas.LockSettingsState, error) {
	var state schemas.LockSettingsState
	err := s.db.inTx(ctx, "changing the lock settings", func(tx pgx.Tx) error {
		var version string // before the change
		var before json.RawMessage
		w := records.Write{UserID: okapi.FromContext(ctx).UserID}
		if err := raiseVersion(ctx, tx, &version, &before, &w.Now); err != nil {
			return err
		}
		if change.Version != "" && change.Version != version {
			return fault.New(fault.Conflict, "The lock settings have version %s, not %.100s: read them again", version, change.Version)
		}
		var err error
		if w.Stored, err = decodeStored(before); err != nil {
			return err
		}
		if w.Record, err = newSettingsEntry(w.Stored, change.Value); err != nil {
			return err
		}
		if err := records.SettingsEntry.Complete(ctx, nil, w); err != nil { // its rules read no other record
			return err
		}
		var b batch
		b.storeRecord(writeSettingsEntrySQL, w.Record)
		if records.DecidesLock(w.Record) {
			b.query(dropAnnouncementSQL, nil)
		}
		b.noteSettings(ctx, lock.Note{Reason: change.Reason, By: change.ByName}, before)
		b.query(settingsStateSQL, []any{schemas.LockEnvironmentLeaseMs}, &state.Version, &state.Entry, &state.EnvironmentOnMs)
		if err := b.send(ctx, tx); err != nil {
			return fmt.Errorf("writing the entry: %w", err)
		}
		return nil
	})
	return state, err
}

// lockSettingsTable lets one change of any settings entry work at a time. It is the
// first statement of a transaction and no part of a batch. PostgreSQL parses a batch
// before it runs it, and parsing an UPDATE locks the table weakly already: two changes
// would wait for each other.
func lockSettingsTable(ctx context.Context, tx pgx.Tx) error {
	_, err := runStatement(ctx, tx, lockSettingsTableSQL)
	if code, _ := database.SQLState(err); code == database.LockNotAvailable {
		err = fmt.Errorf("%w: %w", database.ErrRunAgain, err)
	}
	if err != nil {
		return fmt.Errorf("waiting for commits and for other changes of the settings: %w", err)
	}
	return nil
}

// raiseVersion raises the version, and returns the one before. It locks and reads the entry.
func raiseVersion(ctx context.Context, tx pgx.Tx, version *string, entry *json.RawMessage, now *time.Time) error {
	if err := lockSettingsTable(ctx, tx); err != nil {
		return err
	}
	var b batch
	b.query(readVersionSQL, nil, version)
	b.query(raiseVersionSQL, nil)
	b.query(lockSettingsEntrySQL, nil, entry)
	b.query(clockSQL, nil, now)
	if err := b.send(ctx, tx); err != nil {
		return fmt.Errorf("raising the version: %w", err)
	}
	return nil
}

// newSettingsEntry returns the entry with another value.
func newSettingsEntry(stored records.Record, value json.RawMessage) (records.Record, error) {
	decoded, err := jsonschema.Decode(value)
	if err != nil {
		return nil, err
	}
	return records.Record{
		"id": cmp.Or(stored.ID(), uuid.NewString()), "scope": schemas.LockSettingsScope, "key": schemas.LockSettingsKey, "value": decoded,
	}, nil
}

// Remove implements httpapi.LockSettingsStore. No entry is no error.
func (s *LockSettingsStore) Remove(ctx context.Context) error {
	return s.db.inTx(ctx, "removing the lock settings", func(tx pgx.Tx) error {
		var version string
		var before json.RawMessage
		var now time.Time
		if err := raiseVersion(ctx, tx, &version, &before, &now); err != nil || before == nil {
			return err
		}
		var b batch
		b.query(removeSettingsEntrySQL, nil)
		b.noteSettings(ctx, lock.Note{}, before)
		return b.send(ctx, tx)
	})
}

// The statements on the announcements of instances. Renewing needs no lock, since it
// changes nothing that a check-out acts on. Turning on_until from NULL to a time and back
// needs the table lock of the settings.
const (
	// An announcement of the far future does not count: the clock was set back since.
	announcedSQL = `(a.on_until > clock_timestamp() AND a.on_until <= clock_timestamp() + 2 * $1::bigint * interval '1 ms')`

	renewAnnouncementSQL = `
UPDATE {schema}.check_out_lock_environment a SET on_until = clock_timestamp() + $1::bigint * interval '1 ms'
 WHERE a.on_until IS NOT NULL`
	beginAnnouncementSQL = `
UPDATE {schema}.check_out_lock_environment a SET on_until = clock_timestamp() + $1::bigint * interval '1 ms'
  FROM {schema}.lock_settings_version v
 WHERE a.on_until IS NULL AND v.version::text = $2::text`
	endAnnouncementSQL = `
UPDATE {schema}.check_out_lock_environment a SET on_until = NULL WHERE NOT ` + announcedSQL
	dropAnnouncementSQL = `UPDATE {schema}.check_out_lock_environment SET on_until = NULL WHERE on_until IS NOT NULL`
)

// Announce notes the setting in the environment of the named instance, for a tenant whose
// own settings do not decide, and returns the new state. "On" holds for
// schemas.LockEnvironmentLeaseMs. "Off" has an effect only after the last "on" has lapsed.
// When on turns to off or off to on, the version rises, which refuses every check-out that
// acted on the old state. Fault: Conflict if "on" is based on another version than the
// stored one.
func (s *LockSettingsStore) Announce(ctx context.Context, e schemas.LockEnvironment, instance string) (schemas.LockSettingsState, error) {
	renewed := 0
	if e.Enabled {
		var err error
		renewed, err = s.db.exec(ctx, s.db.conns.Urgent, "announcing the environment's lock setting again", renewAnnouncementSQL, schemas.LockEnvironmentLeaseMs)
		if err != nil {
			return schemas.LockSettingsState{}, err
		}
	}
	if renewed == 0 {
		if err := s.turnAnnouncement(ctx, e, instance); err != nil {
			return schemas.LockSettingsState{}, err
		}
	}
	return s.State(ctx)
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
