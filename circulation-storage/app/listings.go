package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/history"
	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/config/command"
	"checkoutlock/schemas"
)

// maxListed is how many entries a listing has at most.
const maxListed = 1000

// Listing is how a command answers, and which tenant it asks.
type Listing struct {
	Tenant string
	JSON   bool
	Out    io.Writer
}

// table has the columns of a listing. As JSON each row is an object with their names in lower case.
type table struct {
	columns []string
	rows    [][]string
}

func (t *table) add(row ...string) { t.rows = append(t.rows, row) }

func (l Listing) print(t table) error {
	if l.JSON {
		objects := make([]map[string]string, len(t.rows))
		for i, row := range t.rows {
			objects[i] = map[string]string{}
			for k, value := range row {
				objects[i][strings.ToLower(t.columns[k])] = value
			}
		}
		return command.PrintJSON(l.Out, func() (any, error) { return objects, nil })
	}
	w := tabwriter.NewWriter(l.Out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.columns}, t.rows...) {
		for i, value := range row {
			row[i] = cmp.Or(command.FormatCell(value), "-")
		}
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// ListLocks prints the tenant's locks, oldest first, with the time that is left of the lock's
// time to live, or of the tenant's if that is shorter. patron is an id or a barcode, and selects the
// locks of one patron; "" selects all.
func (l Listing) ListLocks(ctx context.Context, cfg Config, patron string) error {
	return withOneTenant(ctx, cfg, l.Tenant, func(ctx context.Context, db *postgres.DB) error {
		filter := lock.Filter{Limit: maxListed}
		if id, err := uuid.Parse(patron); err == nil {
			filter.UserID = id
		} else if patron != "" {
			if filter.UserID, err = db.FindPatron(ctx, patron); err != nil {
				return fmt.Errorf("looking for the patron of -user: %w", err)
			}
		}
		locks, total, err := postgres.NewLockStore(db).List(ctx, filter)
		if err != nil {
			return err
		}
		inForce, err := readTTL(ctx, db)
		if err != nil {
			return err
		}
		t := table{columns: []string{"LOCK", "PATRON", "SINCE", "TTL", "LEFT", "STATE", "HOLDER", "REQUEST"}}
		for _, l := range locks {
			state, left := "held", max(0, min(l.TTL, inForce)-l.Age).Round(time.Millisecond)
			if l.Outdated {
				state, left = "outdated", 0
			}
			t.add(l.ID.String(), l.UserID.String(), l.CreatedAt.Format(time.RFC3339), l.TTL.String(), left.String(), state, l.Holder, l.OkapiRequestID)
		}
		if err := l.print(t); err != nil || l.JSON {
			return err
		}
		_, err = fmt.Fprintf(l.Out, "%d of %d\n", len(locks), total)
		return err
	})
}

// ListTenants prints the installed tenants and whether this build can serve them.
func (l Listing) ListTenants(ctx context.Context, cfg Config) error {
	return withDatabase(ctx, cfg, slog.New(slog.DiscardHandler), func(db *postgres.DB) error {
		found, err := db.Schemas(ctx)
		if err != nil {
			return err
		}
		t := table{columns: []string{"TENANT", "STATE", "MIGRATION", "PROBLEM"}}
		for _, s := range found {
			if l.Tenant != "" && l.Tenant != s.Tenant.String() {
				continue
			}
			t.add(s.Tenant.String(), string(s.State()), strconv.Itoa(int(s.Version)), s.Problem())
		}
		return l.print(t)
	})
}

// ListHistory prints ended check-outs, newest first.
func (l Listing) ListHistory(ctx context.Context, cfg Config, patron, item, outcome string, since time.Duration) error {
	switch rule := history.CheckOutcome(outcome); {
	case outcome != "" && rule != "":
		return command.NewUsage("-outcome %s", rule)
	case since < 0:
		return command.NewUsage("-since is how long ago, such as 1h, and not %s", since)
	}
	return withOneTenant(ctx, cfg, l.Tenant, func(ctx context.Context, db *postgres.DB) error {
		f := history.Filter{UserBarcode: patron, ItemBarcode: item, Outcome: outcome, Since: since, Limit: maxListed}
		page, err := postgres.NewHistoryStore(db, false).List(ctx, f)
		if err != nil {
			return err
		}
		t := table{columns: []string{"DATE", "OUTCOME", "PATRON", "ITEM", "MACHINE", "CODE", "REQUEST", "WHY"}}
		for _, c := range page.CheckOuts {
			t.add(c.Date, c.Outcome, c.UserBarcode, c.ItemBarcode, c.Machine, c.Code, c.RequestID, c.Reason)
		}
		return l.print(t)
	})
}

// PrintSettings prints the tenant's own lock settings.
func (l Listing) PrintSettings(ctx context.Context, cfg Config) error {
	return withOneTenant(ctx, cfg, l.Tenant, func(ctx context.Context, db *postgres.DB) error {
		return command.PrintJSON(l.Out, func() (schemas.LockSettingsState, error) { return postgres.NewLockSettingsStore(db).State(ctx) })
	})
}

// ListChanges prints who changed the lock settings or released a lock, newest first.
func (l Listing) ListChanges(ctx context.Context, cfg Config) error {
	return withOneTenant(ctx, cfg, l.Tenant, func(ctx context.Context, db *postgres.DB) error {
		found, _, err := postgres.NewLockChangeStore(db).List(ctx, "", 0, maxListed)
		if err != nil {
			return err
		}
		t := table{columns: []string{"DATE", "KIND", "BY", "REASON", "BEFORE", "AFTER", "LOCK", "PATRON"}}
		for _, c := range found {
			by, released, patron := c.Note.By, "", ""
			if c.UserID != uuid.Nil {
				by = cmp.Or(by, c.UserID.String())
			}
			if c.Lock != nil {
				released = c.Lock.ID.String()
				if c.Lock.UserID != uuid.Nil { // else the sweep has removed it
					patron = c.Lock.UserID.String()
				}
			}
			t.add(c.Date.Format(time.RFC3339), c.Kind, by, c.Note.Reason, string(c.Before), string(c.After), released, patron)
		}
		return l.print(t)
	})
}
