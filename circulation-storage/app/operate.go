package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/sample"
	"checkoutlock/config/command"
	"checkoutlock/database"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// Migrate installs or upgrades the configured tenants, and loads the demo library into them
// if withSample is set.
func Migrate(ctx context.Context, cfg Config, withSample bool, log *slog.Logger) error {
	return withTenants(ctx, cfg, log, func(ctx context.Context, db *postgres.DB, id okapi.Tenant) error {
		installed, err := install(ctx, db, id, log)
		if err != nil || !installed {
			return err
		}
		log.InfoContext(ctx, "tenant is up to date")
		if !withSample {
			return nil
		}
		if err := sample.Load(ctx, postgres.NewRecordStore(db, func() {}), true, true); err != nil {
			return fmt.Errorf("tenant %s: %w", id, err)
		}
		return nil
	})
}

// install installs or upgrades a tenant of TENANTS. It returns false for one that has moved to another
// database, which an empty tenant must not stand in for.
func install(ctx context.Context, db *postgres.DB, id okapi.Tenant, log *slog.Logger) (bool, error) {
	moved, err := db.IsMoved(ctx, id)
	if err == nil && !moved {
		err = db.Install(ctx, id)
	}
	if moved {
		log.WarnContext(okapi.WithTenant(ctx, id), "tenant not installed, because it has moved to another database: take it out of TENANTS")
	}
	return err == nil && !moved, err
}

// Repair completes the migrations that left the tenants' schemas dirty, and upgrades them.
func Repair(ctx context.Context, cfg Config, log *slog.Logger) error {
	return withTenants(ctx, cfg, log, func(ctx context.Context, db *postgres.DB, id okapi.Tenant) error {
		if err := db.Repair(ctx, id); err != nil {
			return err
		}
		log.InfoContext(ctx, "tenant is up to date")
		return nil
	})
}

// MigrateDown undoes all migrations of the tenants. Their records are lost.
func MigrateDown(ctx context.Context, cfg Config, log *slog.Logger) error {
	return withTenants(ctx, cfg, log, func(ctx context.Context, db *postgres.DB, id okapi.Tenant) error { return db.MigrateDown(ctx, id) })
}

// readTTL returns the time to live that the tenant has set for its locks. It is the longest
// one if the tenant has set none that can be used.
func readTTL(ctx context.Context, db *postgres.DB) (time.Duration, error) {
	state, err := postgres.NewLockSettingsStore(db).State(ctx)
	if err != nil {
		return 0, err
	}
	own, err := schemas.ParseLockSettingsEntry(state.Entry)
	if err != nil || own.TTL == nil { // circulation does not use such settings either
		return schemas.MaxLockTTLMs * time.Millisecond, nil
	}
	return *own.TTL, nil
}

// ReleaseLock releases a lock by its id, outdated or not, and stores the name and the
// reason, which must not be blank. That is safe at any time, because the commit of the
// holder is refused.
func ReleaseLock(ctx context.Context, cfg Config, tenantName, id, reason, by string, out io.Writer) error {
	lockID, err := uuid.Parse(id)
	if err != nil {
		return command.NewUsage("-release must be a lock's UUID: %w", err)
	}
	note := lock.NewNote(reason, by)
	if note.Reason == "" {
		return command.NewUsage("say why with -reason TEXT: it is kept with who releases the lock")
	}
	if err := note.Check(); err != nil {
		return command.NewUsage("%w", err)
	}
	return withOneTenant(ctx, cfg, tenantName, func(ctx context.Context, db *postgres.DB) error {
		l, err := postgres.NewLockStore(db).ForceRelease(ctx, lockID, note)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "released the lock of patron %s, held since %s by %s\n", l.UserID, l.CreatedAt.Format(time.RFC3339), cmp.Or(l.Holder, "-"))
		return err
	})
}

func withOneTenant(ctx context.Context, cfg Config, tenantName string, f func(context.Context, *postgres.DB) error) error {
	if tenantName == "" {
		return command.NewUsage("name a tenant with -tenant")
	}
	ids, err := parseTenants(tenantName)
	if err != nil {
		return err
	}
	return withDatabase(ctx, cfg, slog.New(slog.DiscardHandler), func(db *postgres.DB) error {
		return f(okapi.WithTenant(ctx, ids[0]), db)
	})
}

// withTenants waits for the database and calls f for each configured tenant.
func withTenants(ctx context.Context, cfg Config, log *slog.Logger, f func(context.Context, *postgres.DB, okapi.Tenant) error) error {
	ids, err := parseTenants(cfg.Tenants...)
	if err != nil {
		return err
	}
	return withDatabase(ctx, cfg, log, func(db *postgres.DB) error {
		return awaitEach(ctx, cfg, db, ids, func(id okapi.Tenant) error { return f(okapi.WithTenant(ctx, id), db, id) })
	})
}

// awaitEach waits for the database and calls f for each tenant. It goes on after one whose schema cannot be
// migrated, and returns the errors of all such tenants. It stops at any other error, and begins again if the
// database went away before the wait is over.
func awaitEach(ctx context.Context, cfg Config, db *postgres.DB, ids []okapi.Tenant, f func(okapi.Tenant) error) error {
	return db.Await(ctx, cfg.Database.Wait, func() error {
		var errs []error
		for _, id := range ids {
			if err := f(id); err != nil {
				errs = append(errs, err)
				if !fault.Is(err, fault.TenantNotReady) {
					break
				}
			}
		}
		return errors.Join(errs...)
	})
}

// withDatabase calls f for a command. Its error has the process's status.
func withDatabase(ctx context.Context, cfg Config, log *slog.Logger, f func(*postgres.DB) error) error {
	db, err := openDatabase(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer db.Close()
	err = f(db)
	if database.IsUnreachable(err) {
		return &command.StatusError{Err: err, Status: command.Unreachable}
	}
	return err
}

func openDatabase(ctx context.Context, cfg Config, log *slog.Logger) (*postgres.DB, error) {
	cfg.Database.StatementTimeout, cfg.Database.Traced = cfg.HTTP.RequestTimeout, cfg.Traces.Endpoint != ""
	return postgres.Open(ctx, cfg.Database, log)
}

func parseTenants(names ...string) ([]okapi.Tenant, error) {
	ids := make([]okapi.Tenant, len(names))
	for i, name := range names {
		id, err := okapi.ParseTenant(name)
		if err != nil {
			return nil, command.NewUsage("tenant %q: %w", name, err)
		}
		ids[i] = id
	}
	return ids, nil
}
