package readiness_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation-storage/internal/readiness"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// database is a readiness.Schemas in memory.
type database struct {
	mu      sync.Mutex
	schemas map[string]readiness.Schema
	err     error
	reads   int           // of single schemas
	silent  bool          // the next read of all has no answer
	waited  time.Duration // by that read
}

func (d *database) set(name string, version uint, dirty bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.schemas[name] = readiness.Schema{
		Tenant: parse(name), Installed: true, Version: version, Dirty: dirty, First: 12, Needed: 17,
	}
}

func (d *database) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (d *database) singleReads() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reads
}

// Schemas implements readiness.Schemas.
func (d *database) Schemas(ctx context.Context) ([]readiness.Schema, error) {
	d.mu.Lock()
	silent := d.silent
	d.silent = false
	d.mu.Unlock()
	if silent {
		begun := time.Now()
		<-ctx.Done()
		d.waited = time.Since(begun)
		return nil, ctx.Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []readiness.Schema
	for s := range maps.Values(d.schemas) {
		all = append(all, s)
	}
	return all, d.err
}

// Schema implements readiness.Schemas.
func (d *database) Schema(ctx context.Context) (readiness.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads++
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return readiness.Schema{}, err
	}
	s, ok := d.schemas[id.String()]
	if !ok {
		s = readiness.Schema{Tenant: id, First: 12, Needed: 17}
	}
	return s, d.err
}

func parse(name string) okapi.Tenant {
	id, err := okapi.ParseTenant(name)
	if err != nil {
		panic(err)
	}
	return id
}

func inTenant(t *testing.T, name string) context.Context {
	t.Helper()
	return okapi.WithTenant(t.Context(), parse(name))
}

// harness is a Watch that polls each minute, its counts and its log.
type harness struct {
	*database
	watch *readiness.Watch
	log   *bytes.Buffer

	counts map[readiness.State]int
}

// watchInBubble runs a Watch until the test's bubble ends.
func watchInBubble(t *testing.T) *harness {
	t.Helper()
	b := &harness{
		database: &database{schemas: map[string]readiness.Schema{}}, log: &bytes.Buffer{}, counts: map[readiness.State]int{},
	}
	count := func(s readiness.State, n int) { b.counts[s] = n }
	b.watch = readiness.NewWatch(b.database, time.Minute, count, slog.New(slog.NewTextHandler(b.log, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.watch.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return b
}

// nextPoll waits until the next poll is over.
func nextPoll() {
	<-time.After(time.Minute)
	synctest.Wait()
}

func TestWatch_RefusesSingleTenants(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := watchInBubble(t)
		b.set("fine", 17, false)
		b.set("newer", 18, false)
		b.set("old", 14, false)
		b.set("torn", 17, true)
		nextPoll()
		for name, want := range map[string]fault.Code{
			"fine": "", "newer": "", "unseen": "", "old": fault.TenantNotReady, "torn": fault.TenantNotReady,
		} {
			if err := b.watch.Check(inTenant(t, name)); fault.CodeOf(err) != want {
				t.Errorf("%s: got %v, want code %q", name, err, want)
			}
		}
		if n := b.singleReads(); n != 2 {
			t.Errorf("%d schemas were read for 5 requests, want those of the 2 tenants that are refused", n)
		}
		if err := b.watch.Check(t.Context()); err != nil {
			t.Errorf("without a tenant: got %v, want nil", err)
		}
		want := map[readiness.State]int{readiness.Current: 2, readiness.Behind: 1, readiness.Dirty: 1}
		if !maps.Equal(b.counts, want) {
			t.Errorf("counted %v, want %v", b.counts, want)
		}
	})
}

// After an upgrade it lacks migrations until the next drill, which is no alarm.
func TestWatch_SaysNothingOfTheLibraryOfDrills(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := watchInBubble(t)
		b.set(okapi.DrillTenant, 14, false)
		nextPoll()
		if n := b.counts[readiness.Behind]; n != 0 || b.log.Len() > 0 {
			t.Errorf("counted %d tenants and logged %s, want nothing", n, b.log)
		}
		if err := b.watch.Check(inTenant(t, okapi.DrillTenant)); !fault.Is(err, fault.TenantNotReady) {
			t.Errorf("got %v, want it refused", err)
		}
	})
}

func TestWatch_RefusesSingleTenantsBeforeTheFirstPoll(t *testing.T) {
	t.Parallel()
	d := &database{schemas: map[string]readiness.Schema{}}
	d.set("fine", 17, false)
	d.set("old", 14, false)
	d.set("torn", 17, true)
	w := readiness.NewWatch(d, time.Hour, func(readiness.State, int) {}, slog.New(slog.DiscardHandler))
	for name, want := range map[string]fault.Code{
		"fine": "", "unseen": fault.UnknownTenant, "old": fault.TenantNotReady, "torn": fault.TenantNotReady,
	} {
		if err := w.Check(inTenant(t, name)); fault.CodeOf(err) != want {
			t.Errorf("%s: got %v, want code %q", name, err, want)
		}
	}
	if err := w.Check(t.Context()); err != nil {
		t.Errorf("without a tenant: got %v, want nil", err)
	}
}

func TestWatch_ServesATenantAsSoonAsItIsUpgraded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := watchInBubble(t)
		b.set("old", 14, false)
		nextPoll()
		b.set("old", 17, false)
		if err := b.watch.Check(inTenant(t, "old")); err != nil {
			t.Errorf("got %v before the next look, want it served", err)
		}
	})
}

func TestWatch_PollsAgainAfterAPollWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := watchInBubble(t)
		synctest.Wait()
		b.mu.Lock()
		b.silent = true
		b.mu.Unlock()
		nextPoll()
		<-time.After(2 * time.Minute)
		b.set("old", 14, false)
		nextPoll()
		if err := b.watch.Check(inTenant(t, "old")); !fault.Is(err, fault.TenantNotReady) {
			t.Errorf("got %v, want %s", err, fault.TenantNotReady)
		}
		if b.waited > 5*time.Second {
			t.Errorf("the poll kept its connection for %s", b.waited)
		}
	})
}

func TestWatch_LogsChangesOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := watchInBubble(t)
		b.set("fine", 17, false)
		b.set("old", 14, false)
		nextPoll()
		nextPoll()
		b.set("old", 15, true)
		nextPoll()
		nextPoll()
		b.set("old", 17, false)
		nextPoll()
		nextPoll()
		lines := strings.Split(strings.TrimSpace(b.log.String()), "\n")
		want := []string{"state=lacks_migrations", "state=dirty", "the tenant is served again"}
		if len(lines) != len(want) {
			t.Fatalf("logged\n%s\nwant %d lines", b.log, len(want))
		}
		for i := range want {
			if !strings.Contains(lines[i], want[i]) {
				t.Errorf("line %d is %s, want %s in it", i+1, lines[i], want[i])
			}
		}
		if got := b.counts[readiness.Behind] + b.counts[readiness.Dirty]; got != 0 || b.counts[readiness.Current] != 2 {
			t.Errorf("counted %v, want both tenants as current and no others", b.counts)
		}
	})
}

func TestWatch_KeepsItsStateWhenTheDatabaseFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := watchInBubble(t)
		b.set("old", 14, false)
		nextPoll()
		before := b.log.Len()
		b.fail(fault.New(fault.Unavailable, "gone"))
		nextPoll()
		if b.log.Len() != before {
			t.Errorf("an outage was logged: %s", b.log)
		}
		if err := b.watch.Check(inTenant(t, "old")); !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v, want the outage", err)
		}
		noTable := fault.New(fault.UnknownTenant, "no table")
		if err := b.watch.Explain(inTenant(t, "old"), noTable); err.Error() != noTable.Error() {
			t.Errorf("got %v without the schema, want %v", err, noTable)
		}
		b.fail(errors.New("permission denied"))
		nextPoll()
		if !strings.Contains(b.log.String(), "permission denied") {
			t.Errorf("logged %s, want the failure", b.log)
		}
	})
}

func TestWatch_ExplainsARequestsError(t *testing.T) {
	t.Parallel()
	d := &database{schemas: map[string]readiness.Schema{}}
	d.set("fine", 17, false)
	d.set("old", 12, false)
	d.set("torn", 16, true)
	d.set("undone", 0, false)
	d.set("ancient", 11, false)
	d.set("ancient_torn", 11, true)
	w := readiness.NewWatch(d, time.Hour, func(readiness.State, int) {}, slog.New(slog.DiscardHandler))
	noTable, noColumn := fault.New(fault.UnknownTenant, "no table"), fault.New(fault.TenantNotReady, "no column")
	for name, tt := range map[string]struct {
		tenant string
		err    error
		want   fault.Code
		says   string
	}{
		"not installed": {
			tenant: "nowhere", err: noTable, want: fault.UnknownTenant,
			says: "Unknown tenant nowhere: install it with circulation-storage migrate -tenant nowhere",
		},
		"migrations undone": {
			tenant: "undone", err: noTable, want: fault.TenantNotReady,
			says: "Tenant undone has migration 0, this build needs migration 17: " +
				"upgrade it with circulation-storage migrate -tenant undone",
		},
		"an older table": {
			tenant: "old", err: noColumn, want: fault.TenantNotReady,
			says: "Tenant old has migration 12, this build needs migration 17",
		},
		"a table too new": {
			tenant: "old", err: noTable, want: fault.TenantNotReady, says: "Tenant old has migration 12",
		},
		"dirty": {
			tenant: "torn", err: noColumn, want: fault.TenantNotReady,
			says: "Migration 16 of tenant torn did not end and left the schema dirty, this build needs migration 17: " +
				"repair it with circulation-storage migrate -repair -tenant torn",
		},
		"below the first migration": {
			tenant: "ancient", err: noColumn, want: fault.TenantNotReady,
			says: "Tenant ancient has migration 11, and this build begins with migration 12: " +
				"first upgrade it with a revision that still has the migrations up to 12",
		},
		"dirty below the first migration": {
			tenant: "ancient_torn", err: noColumn, want: fault.TenantNotReady,
			says: "first upgrade it with a revision that still has the migrations up to 12",
		},
		"installed meanwhile": {
			tenant: "fine", err: noTable, want: fault.TenantNotReady, says: "send the request again",
		},
		"a column in no version": {
			tenant: "fine", err: noColumn, want: fault.Internal, says: "Internal server error",
		},
		"another error": {
			tenant: "old", err: fault.New(fault.Conflict, "changed"), want: fault.Conflict, says: "changed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := w.Explain(inTenant(t, tt.tenant), fmt.Errorf("reading: %w", tt.err))
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != tt.want || !strings.Contains(f.Msg, tt.says) {
				t.Errorf("got %v, want %s with %q", err, tt.want, tt.says)
			}
			if again := strings.HasSuffix(tt.says, "again"); again != (f.RetryAfter > 0) {
				t.Errorf("retry after %s", f.RetryAfter)
			}
			if !errors.Is(err, tt.err) {
				t.Errorf("%v lost its cause", err)
			}
		})
	}
}
