package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"checkoutlock/config/command"
	"checkoutlock/database"
	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/schemas/fault"
)

// maxListed is how many claims List prints at most.
const maxListed = 1000

// Migrate creates or upgrades the schema.
func Migrate(ctx context.Context, cfg Config, log *slog.Logger) error {
	return withDatabase(ctx, cfg, log, func(db *postgres.DB) error { return db.Migrations().Up(ctx) })
}

// Repair completes a migration that left the schema dirty, and upgrades it.
func Repair(ctx context.Context, cfg Config, log *slog.Logger) error {
	return withDatabase(ctx, cfg, log, func(db *postgres.DB) error { return db.Migrations().Repair(ctx) })
}

// MigrateDown undoes all migrations. All locks are lost.
func MigrateDown(ctx context.Context, cfg Config, log *slog.Logger) error {
	return withDatabase(ctx, cfg, log, func(db *postgres.DB) error { return db.Migrations().Down(ctx) })
}

// List prints the live locks and the claims of a namespace; an empty one is all. After an error
// it prints nothing.
func List(ctx context.Context, cfg Config, namespace string, out io.Writer) error {
	return withEngine(ctx, cfg, func(e engines) error {
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "LOCK\tNAMESPACE\tNAME\tKIND\tOWNER\tFENCE\tSINCE\tEXPIRES")
		err := e.locks.Walk(ctx, engine.Filter{Namespace: namespace}, func(l engine.Lock) error {
			printRow(w, l.ID.String(), l.Namespace, l.Name, l.Kind, l.Owner, strconv.FormatInt(l.Fence, 10),
				l.GrantedAt.Format(time.RFC3339), l.ExpiresAt.Format(time.RFC3339))
			return nil
		})
		if err != nil {
			return err
		}
		claims, err := e.claims.List(ctx, namespace, maxListed)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintln(w, "\nCLAIM\tNAMESPACE\tNUMBER\tSTATE\tCONNECTION\tSINCE\tPATHS")
		for _, c := range claims {
			state := "held"
			if !c.Held {
				state = fmt.Sprintf("waits for %d", c.WaitsFor)
			}
			printRow(w, c.ID.String(), c.Namespace, strconv.FormatInt(c.Number, 10), state, c.Owner,
				c.QueuedAt.Format(time.RFC3339), engine.FormatResources(c.Resources))
		}
		if len(claims) == maxListed {
			_, _ = fmt.Fprintf(w, "\nThe list ends after %d claims.\n", maxListed)
		}
		return w.Flush()
	})
}

// printRow prints a line of cells.
func printRow(w io.Writer, cells ...string) {
	for i, cell := range cells {
		cells[i] = command.FormatCell(cell)
	}
	_, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) // Flush returns the error
}

// Release names what ForceRelease releases: a lock by Name and ID, or a claim.
type Release struct {
	Namespace, Name, ID string
	Claim               string
	Reason, By          string
}

// ForceRelease releases a lock or a claim, and keeps the name and the reason.
func ForceRelease(ctx context.Context, cfg Config, r Release, out io.Writer) error {
	note := engine.Note{By: r.By, Reason: r.Reason}
	if err := note.Check(); err != nil {
		return command.NewUsage("say why with -reason TEXT, of at most 500 characters: it is kept with who releases the lock")
	}
	if r.Namespace == "" || (r.ID == "") == (r.Claim == "") {
		return command.NewUsage("name the lock with -namespace, -name and -id, or the claim with -namespace and -claim")
	}
	return withEngine(ctx, cfg, func(e engines) error {
		if r.Claim != "" {
			return releaseClaim(ctx, e.claims, r, note, out)
		}
		id, err := uuid.Parse(r.ID)
		if err != nil {
			return command.NewUsage("-id must be a UUID, as list prints it: %w", err)
		}
		l, err := e.locks.ForceRelease(ctx, engine.Key{Namespace: r.Namespace, Name: r.Name}, id, note)
		if fault.Is(err, fault.NotFound) {
			return errors.New("there is no such lock: it was released, has expired, or was granted anew under another id")
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "released %s %q, held since %s by %s\n", command.FormatCell(l.Namespace), l.Name,
			l.GrantedAt.Format(time.RFC3339), command.FormatCell(l.Owner))
		return err
	})
}

func releaseClaim(ctx context.Context, claims *engine.Claims, r Release, note engine.Note, out io.Writer) error {
	id, err := uuid.Parse(r.Claim)
	if err != nil {
		return command.NewUsage("-claim must be a UUID, as list prints it: %w", err)
	}
	err = claims.ForceWithdraw(ctx, r.Namespace, id, note)
	if fault.Is(err, fault.NotFound) {
		return errors.New("there is no such claim: it was released, or its connection has ended")
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "released the claim %s in %q; its connection ends\n", id, r.Namespace)
	return err
}

// withEngine calls f with the engine of a command, which takes no lease and reports no events. It does not
// wait for the database.
func withEngine(ctx context.Context, cfg Config, f func(engines) error) error {
	cfg.Database.Wait = 0
	log := slog.New(slog.DiscardHandler)
	return withDatabase(ctx, cfg, log, func(db *postgres.DB) error { return f(newEngines(db, log)) })
}

// withDatabase waits for the database and calls f, again if the database goes away before the wait is over.
func withDatabase(ctx context.Context, cfg Config, log *slog.Logger, f func(*postgres.DB) error) error {
	db, err := openDatabase(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer db.Close()
	err = db.Await(ctx, cfg.Database.Wait, func() error { return f(db) })
	if database.IsUnreachable(err) {
		return &command.StatusError{Err: err, Status: command.Unreachable}
	}
	return err
}

func openDatabase(ctx context.Context, cfg Config, log *slog.Logger) (*postgres.DB, error) {
	cfg.Database.StatementTimeout, cfg.Database.Traced = cfg.HTTP.RequestTimeout, cfg.Traces.Endpoint != ""
	return postgres.Open(ctx, cfg.Database, log)
}
