package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/user"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/config/command"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

var run = program.Run

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// runLocks runs the command for a tenant and returns its output.
func runLocks(ctx context.Context, t *testing.T, id okapi.Tenant, args ...string) (string, error) {
	var out strings.Builder
	args = append([]string{"locks", "-tenant", id.String()}, args...)
	err := run(ctx, command.Process{
		Args: args, Environ: []string{"DATABASE_URL=" + pgtest.URL(t)}, Stdout: &out, Stderr: io.Discard,
	})
	return out.String(), err
}

func TestLocks_ListsEachLockWithItsCheckOut(t *testing.T) {
	t.Parallel()
	db, id := pgtest.New(t)
	ctx := okapi.WithTenant(t.Context(), id)
	store := postgres.NewLockStore(db)
	known := lock.Request{
		UserID: uuid.New(), TTL: time.Hour, AcquisitionID: uuid.New(), Holder: "desk-1", OkapiRequestID: "17/circulation",
	}
	unknown := lock.Request{UserID: uuid.New(), TTL: 0, AcquisitionID: uuid.New()}
	want := map[uuid.UUID]string{known.UserID: "held desk-1 17/circulation", unknown.UserID: "outdated - -"}
	for _, req := range []lock.Request{known, unknown} {
		if _, _, err := store.Acquire(ctx, req); err != nil {
			t.Fatal(err)
		}
	}
	for user, want := range want {
		out, err := runLocks(ctx, t, id, "-user", user.String())
		lines := strings.Split(out, "\n")
		if err != nil || len(lines) < 2 || !strings.HasSuffix(strings.Join(strings.Fields(lines[1]), " "), " "+want) {
			t.Errorf("got %s, %v, want a line that ends in %q", out, err, want)
		}
	}
	const noPatron = `No patron has the barcode "nobody"`
	if _, err := runLocks(ctx, t, id, "-user", "nobody"); err == nil || !strings.HasSuffix(err.Error(), noPatron) {
		t.Errorf("an unknown barcode: got %v, want %s", err, noPatron)
	}
}

// A newcomer takes a lock over that is older than the newcomer's own TTL.
func TestLocks_SaysHowLongEachIsHeld(t *testing.T) {
	t.Parallel()
	db, id := pgtest.New(t)
	ctx := okapi.WithTenant(t.Context(), id)
	l, _, err := postgres.NewLockStore(db).Acquire(ctx, lock.Request{UserID: uuid.New(), TTL: 9 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	setAge := "UPDATE " + postgres.SchemaName(id) + ".check_out_lock SET creation_date = clock_timestamp() - $1::interval"
	for _, tt := range []struct {
		name        string
		value       string // of the tenant's settings
		age         time.Duration
		least, most time.Duration // that is left
		state       string
	}{
		{name: "no settings of the tenant", age: time.Minute, least: 7 * time.Minute, most: 8 * time.Minute, state: "held"},
		{
			name: "a shorter TTL in force", value: `{"lockTtl":300000}`, age: time.Minute, least: 3 * time.Minute,
			most: 4 * time.Minute, state: "held",
		},
		{name: "a TTL in force that is over", value: `{"lockTtl":250}`, age: time.Minute, state: "held"},
		{
			name: "a longer TTL in force", value: `{"lockTtl":600000}`, age: time.Minute, least: 7 * time.Minute,
			most: 8 * time.Minute, state: "held",
		},
		{name: "an outdated lock", age: time.Hour, state: "outdated"},
	} {
		if tt.value != "" {
			if _, err := postgres.NewLockSettingsStore(db).Change(ctx,
				schemas.LockSettingsChange{Value: []byte(tt.value)}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := db.Pool().Exec(ctx, setAge, tt.age); err != nil {
			t.Fatal(err)
		}
		out, err := runLocks(ctx, t, id)
		_, listed, _ := strings.Cut(out, "\n")
		fields := strings.Fields(listed)
		if err != nil || len(fields) < 6 || fields[0] != l.ID.String() || fields[3] != "9m0s" || fields[5] != tt.state {
			t.Errorf("%s: got %s, %v, want a lock of 9m0s that is %s", tt.name, out, err, tt.state)
			continue
		}
		if left, err := time.ParseDuration(fields[4]); err != nil || left < tt.least || left > tt.most {
			t.Errorf("%s: %s is left, want %s to %s", tt.name, fields[4], tt.least, tt.most)
		}
	}
}

func TestLocks_ReleasesWithAReasonOnly(t *testing.T) {
	t.Parallel()
	db, id := pgtest.New(t)
	ctx := okapi.WithTenant(t.Context(), id)
	store, changes := postgres.NewLockStore(db), postgres.NewLockChangeStore(db)
	l, _, err := store.Acquire(ctx, lock.Request{UserID: uuid.New(), TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	locks := func(args ...string) (string, error) { return runLocks(ctx, t, id, args...) }
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no reason":      {[]string{"-release", l.ID.String()}, "say why with -reason TEXT"},
		"a blank reason": {[]string{"-release", l.ID.String(), "-reason", " \n"}, "say why with -reason TEXT"},
		"too long a reason": {
			[]string{"-release", l.ID.String(), "-reason", strings.Repeat("x", 501)}, "reason must have at most 500 characters",
		},
		"a reason without lock": {[]string{"-reason", "stuck"}, "-reason goes with -release ID"},
		"a reason in no quotes": {[]string{"-release", l.ID.String(), "-reason", "it", "hangs"}, `got ["hangs"]`},
		"no lock's id":          {[]string{"-release", "7", "-reason", "stuck"}, "-release must be a lock's UUID"},
		"unknown lock":          {[]string{"-release", uuid.NewString(), "-reason", "stuck"}, "Lock not found"},
	} {
		if out, err := locks(tt.args...); err == nil || !strings.Contains(err.Error(), tt.want) || out != "" {
			t.Errorf("%s: %q, %v, want an error with %q", name, out, err, tt.want)
		}
	}
	if out, err := locks(); err != nil || !strings.Contains(out, l.ID.String()) {
		t.Fatalf("afterwards: %s, %v, want the lock still there", out, err)
	}

	out, err := locks("-release", l.ID.String(), "-reason", " it hangs ")
	if err != nil || !strings.Contains(out, l.UserID.String()) {
		t.Errorf("release: %q, %v, want the patron's id", out, err)
	}
	if _, err := store.Get(ctx, l.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("the lock is still there: %v", err)
	}
	noted, total, err := changes.List(ctx, "", 0, 10)
	if err != nil || total != 1 {
		t.Fatalf("%d changes, %v, want 1", total, err)
	}
	by := "unknown"
	if u, err := user.Current(); err == nil {
		by = u.Username
	}
	if c := noted[0]; c.Kind != schemas.ChangeRelease || c.Note != (lock.Note{Reason: "it hangs", By: by}) ||
		c.Lock.ID != l.ID {
		t.Errorf("noted %+v with %+v, want the reason, %s and the lock", c, c.Lock, by)
	}
}

func TestMigrate_RepairsADirtySchema(t *testing.T) {
	t.Parallel()
	db, id := pgtest.New(t)
	migrate := func(args ...string) error {
		return run(t.Context(), command.Process{
			Args: append([]string{"migrate"}, args...), Environ: []string{"DATABASE_URL=" + pgtest.URL(t)}, Stdout: io.Discard,
			Stderr: io.Discard,
		})
	}
	if _, err := db.Pool().Exec(t.Context(), "UPDATE "+postgres.SchemaName(id)+
		".schema_migrations SET dirty = true"); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no repair": {[]string{"-tenant", id.String()}, "circulation-storage migrate -repair -tenant " + id.String()},
		"repair and down": {
			[]string{"-repair", "-down", "-tenant", id.String()}, "only one of -repair, -down and -sample",
		},
		"down and sample": {
			[]string{"-down", "-sample", "-tenant", id.String()}, "only one of -repair, -down and -sample",
		},
		"no tenant": {[]string{"-repair"}, "no tenant"},
	} {
		if err := migrate(tt.args...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
	if err := migrate("-repair", "-tenant", id.String()); err != nil {
		t.Errorf("repair: %v", err)
	}
	if err := db.Ready(t.Context(), []okapi.Tenant{id}); err != nil {
		t.Errorf("afterwards: %v, want it ready", err)
	}
}

func TestMigrate_RefusesOnlyTenantsBelowTheBaseline(t *testing.T) {
	t.Parallel()
	db, old := pgtest.New(t)
	_, torn := pgtest.New(t)
	_, down := pgtest.New(t)
	for id, change := range map[okapi.Tenant]string{old: "version = 1", torn: "version = 2, dirty = true"} {
		if _, err := db.Pool().Exec(t.Context(), "UPDATE "+postgres.SchemaName(id)+".schema_migrations SET "+
			change); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.MigrateDown(t.Context(), down); err != nil {
		t.Fatal(err)
	}
	tenants := strings.Join([]string{old.String(), torn.String(), down.String()}, ",")
	for _, args := range [][]string{{"migrate"}, {"serve"}} {
		err := run(t.Context(), command.Process{
			Args:    args,
			Environ: []string{"DATABASE_URL=" + pgtest.URL(t), "PORT=0", "TENANTS=" + tenants},
			Stdout:  io.Discard, Stderr: io.Discard,
		})
		for _, id := range []okapi.Tenant{old, torn} {
			if err == nil || !strings.Contains(err.Error(), "tenant "+id.String()+": ") {
				t.Errorf("%s: got %v, want it to name %s", args, err, id)
			}
		}
		if err == nil || strings.Contains(err.Error(), down.String()) {
			t.Errorf("%s: got %v, want no word of %s", args, err, down)
		}
		if err := db.Ready(t.Context(), []okapi.Tenant{down}); err != nil {
			t.Errorf("%s: the tenant that it can migrate: %v, want it ready", args, err)
		}
	}
}

func TestMigrate_RefusesWordsBesideItsFlags(t *testing.T) {
	t.Parallel()
	db, id := pgtest.New(t)
	schema := postgres.SchemaName(id)
	isInstalled := func(schema string) (found bool) {
		t.Helper()
		if err := db.Pool().QueryRow(t.Context(), "SELECT to_regnamespace($1) IS NOT NULL", schema).Scan(&found); err != nil {
			t.Fatal(err)
		}
		return found
	}
	absent := pgtest.Tenant(t)
	for _, args := range [][]string{
		{"diku"},
		{"diku", "-down", "-tenant", id.String()},
		{"-down", "-tenant", id.String(), "b"},
		{"-repair", "-tenant", id.String(), "b"},
		{"-sample", "-tenant", absent.String(), "b"},
	} {
		err := run(t.Context(), command.Process{
			Args: append([]string{"migrate"}, args...), Environ: []string{
				"DATABASE_URL=" + pgtest.URL(t), "TENANTS=" + absent.String(),
			},
			Stdout: io.Discard, Stderr: io.Discard,
		})
		if err == nil || !strings.Contains(err.Error(), "migrate takes flags alone, but got [") {
			t.Errorf("migrate %q: got %v, want it to name the words", args, err)
		}
		if !isInstalled(schema) || isInstalled(postgres.SchemaName(absent)) {
			t.Errorf("migrate %q changed a tenant", args)
		}
	}
}

func TestDescriptor_LeavesOutNamedInterfaces(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := run(t.Context(), command.Process{Args: []string{"descriptor", "-without", "users,settings"}, Stdout: &out})
	text := out.String()
	if err != nil || strings.Contains(text, `"/users"`) || strings.Contains(text, `"/settings/entries"`) ||
		!strings.Contains(text, `"/loan-storage/loans"`) {
		t.Errorf("got %.200s, %v", text, err)
	}
	err = run(t.Context(), command.Process{Args: []string{"descriptor", "users"}, Stdout: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "descriptor takes flags alone") {
		t.Errorf("a word beside the flags: %v", err)
	}
}

func TestServe_LogsTheErrorThatEndsIt(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	environ := []string{"DATABASE_URL=postgres://u@127.0.0.1:1/x", "DATABASE_WAIT=0", "PORT=0"}
	err := run(t.Context(), command.Process{Args: nil, Environ: environ, Stdout: io.Discard, Stderr: &log})
	if logged, ok := errors.AsType[*command.StatusError](err); !ok || !logged.Logged {
		t.Errorf("got %v, want an error that is in the log", err)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if !strings.Contains(lines[0], `"msg":"starting","service":"circulation-storage","version":"devel"`) {
		t.Errorf("the log begins with %s, want the build", lines[0])
	}
	var last struct{ Level, Service, Err string }
	if e := json.Unmarshal([]byte(lines[len(lines)-1]), &last); e != nil || last.Level != "ERROR" ||
		last.Service != "circulation-storage" || last.Err == "" {
		t.Errorf("the log ends with %q, want an ERROR with the cause", lines[len(lines)-1])
	}
}

func TestVersion_NeedsNoSettings(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"version", "-version", "--version"} {
		var out bytes.Buffer
		err := run(t.Context(), command.Process{Args: []string{arg}, Environ: []string{"LOCK_TTL_MS=0"}, Stdout: &out})
		if err != nil || !strings.HasPrefix(out.String(), "circulation-storage devel") {
			t.Errorf("%s: got %q, %v", arg, &out, err)
		}
	}
}
