package integration_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	storage "checkoutlock/circulation-storage/app"
	circulation "checkoutlock/circulation/app"
	"checkoutlock/config"
	"checkoutlock/integration-tests/stack"
)

func TestStart_EightInstancesAtOnce(t *testing.T) {
	t.Parallel()
	database, tenants := createDatabase(t), []string{"north", "south", "east_2"}
	var mu sync.Mutex
	var running []*stack.Stack
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := stack.Start(t.Context(), stack.Options{
				DatabaseURL: database,
				StorageEnv:  []string{"DATABASE_MAX_CONNS=2", "TENANTS=" + strings.Join(tenants, ",")},
			})
			if err != nil {
				t.Errorf("starting: %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			running = append(running, s)
		})
	}
	wg.Wait()
	t.Cleanup(func() {
		for _, s := range running {
			if err := s.Stop(); err != nil {
				t.Errorf("stopping: %v", err)
			}
		}
	})
	for i, s := range running {
		checkHealth(t, s.Storages[0], http.StatusOK)
		checkHealth(t, s.Circulations[0], http.StatusOK)
		for _, tenant := range tenants {
			c := newClient(s.Storages[0], tenant)
			if a := callEndpoint(t, c, http.MethodPost, "/groups",
				map[string]any{"group": fmt.Sprint("group ", i)}); a.Status != http.StatusCreated {
				t.Errorf("%s, instance %d: %d %s", tenant, i, a.Status, a.Body)
			}
		}
	}
}

func TestTenant_DownAndUp(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{DatabaseURL: createDatabase(t), CirculationEnv: enableLock()}, 1)
	_, patron := p.addPatron(t)
	if a := p.lendBook(t, 0, p.addBooks(t, 1)[0], patron); a.Status != http.StatusCreated {
		t.Fatalf("answered %d %s", a.Status, a.Body)
	}
	cfg, log := storage.DefaultConfig(), slog.New(slog.DiscardHandler)
	if err := config.Load(&cfg, []string{"DATABASE_URL=" + p.databaseURL, "TENANTS=" + p.Storage.Tenant}); err != nil {
		t.Fatal(err)
	}

	if err := storage.MigrateDown(t.Context(), cfg, log); err != nil {
		t.Fatal(err)
	}
	checkHealth(t, p.Storages[0], http.StatusOK)
	checkNotServed(t, p, "has migration 0, this build needs migration")

	if err := storage.Migrate(t.Context(), cfg, false, log); err != nil {
		t.Fatal(err)
	}
	checkHealth(t, p.Storages[0], http.StatusOK)
	if n := p.countRecords(t, "/loan-storage/loans"); n != 0 {
		t.Errorf("%d loans are stored after the migration, want none", n)
	}
	if a := callEndpoint(t, p.Storage, http.MethodPost, "/groups",
		map[string]any{"group": "readers"}); a.Status != http.StatusCreated {
		t.Errorf("a record after the migration: %d %s", a.Status, a.Body)
	}
}

func TestStart_NamesEveryBadSetting(t *testing.T) {
	t.Parallel()
	store, other, circ := storage.DefaultConfig(), storage.DefaultConfig(), circulation.DefaultConfig()
	tests := map[string]struct {
		cfg     config.Validator
		environ []string
	}{
		"circulation-storage": {&store, []string{
			"PORT=70000", "REQUEST_TIMEOUT=1s", "LOG_LEVEL=loud", "DATABASE_URL=", "DATABASE_MAX_CONNS=1", "DATABASE_WAIT=11m",
			"MIGRATE_DATABASE_URL=postgres://u:s3cret@host:port/x", "TENANTS=diku,Robert'); DROP", "LOCK_TTL_MS=10",
			"LOCK_SWEEP_INTERVAL=often", "HISTORY_RETENTION=59m", "LOAN_HISTORY_RETENTION=23h", "INSTALL_TIMEOUT=2h",
		}},
		"circulation-storage, an address without a form": {&other, []string{"PORT=web", "DATABASE_URL=s3cret"}},
		"circulation": {&circ, []string{
			"PORT=web", "REQUEST_TIMEOUT=1s", "SHUTDOWN_TIMEOUT=1s", "STORAGE_URL=storage:8081", "INSTANCE_NAME=desk 1",
			"CHECKOUT_LOCK_FEATURE_ENABLED=maybe",
			"LOCK_TTL_MS=-1", "RETRY_INTERVAL_MS=500|20000",
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := config.Load(tt.cfg, tt.environ)
			if err == nil {
				t.Fatal("the settings are accepted")
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error has a password:\n%v", err)
			}
			for _, setting := range tt.environ {
				if variable, _, _ := strings.Cut(setting, "="); !strings.Contains(err.Error(), "\n  "+variable+" ") {
					t.Errorf("%s is not named in:\n%v", setting, err)
				}
				if isURL := strings.Contains(setting, "DATABASE_URL="); isURL &&
					!strings.Contains(err.Error(), "such as postgres://") {
					t.Errorf("%s has no example in:\n%v", setting, err)
				}
			}
		})
	}
}

func TestStart_ErrorsNameNoSecret(t *testing.T) {
	t.Parallel()
	s, err := stack.Start(t.Context(), stack.Options{DatabaseURL: databaseURL(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	port := func(base string) string { return "PORT=" + base[strings.LastIndex(base, ":")+1:] }
	tests := map[string]struct {
		options stack.Options
		says    string
	}{
		"no PostgreSQL at the address": {
			stack.Options{DatabaseURL: "postgres://u:s3cret@127.0.0.1:1/x", StorageEnv: []string{"DATABASE_WAIT=0"}},
			"DATABASE_URL",
		},
		"an invalid database address": {stack.Options{DatabaseURL: "postgres://u:s3cret@host:port/x"}, "DATABASE_URL"},
		"the port of storage is taken": {
			stack.Options{DatabaseURL: databaseURL(t), StorageEnv: []string{port(s.Storages[0])}}, "PORT",
		},
		"the port of circulation is taken": {
			stack.Options{DatabaseURL: databaseURL(t), CirculationEnv: []string{port(s.Circulations[0])}}, "PORT",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := stack.Start(t.Context(), tt.options)
			if err == nil {
				t.Fatalf("it started: %v", s.Stop())
			}
			if !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %q, want it to name %s and no password", err, tt.says)
			}
		})
	}
}

func TestStart_RefusesAnotherIsolationLevelBehindPgBouncer(t *testing.T) {
	t.Parallel()
	database := createDatabase(t)
	execSQL(t, database, `DO $$ BEGIN
		EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = serializable', current_database()); END $$`)
	cfg := storage.DefaultConfig()
	cfg.HTTP.Port = 0
	if err := config.Load(&cfg, []string{"DATABASE_URL=" + startPgBouncer(t, database, 2)}); err != nil {
		t.Fatal(err)
	}
	_, err := storage.New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "SET default_transaction_isolation = 'read committed'") {
		t.Errorf("got %v, want what to set", err)
	}
}
