package integration_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	storage "checkoutlock/circulation-storage/app"
	"checkoutlock/config"
	"checkoutlock/devpostgres/testserver"
	"checkoutlock/integration-tests/stack"
)

var (
	composeURL     = regexp.MustCompile(`DATABASE_URL: (postgres://\S+)`)
	composeDefault = regexp.MustCompile(`\$\{([A-Z_]+):-([^}]*)\}`)
)

// startComposeDatabase starts a PostgreSQL as docker-compose.yml does. It returns the address
// that each role has there, by the role's name.
func startComposeDatabase(t *testing.T) map[string]*url.URL {
	t.Helper()
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Skipf("there is no psql to test with (on Debian, as root: apt-get install postgresql-client): %v", err)
	}
	compose, err := os.ReadFile("../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	pg := testserver.Start(t, nil)
	init := exec.CommandContext(t.Context(), psql, "-X", "-v", "ON_ERROR_STOP=1", "--no-password", "-d", pg.URL(), "-f",
		"../docker-compose.sql")
	init.Env = os.Environ()
	for _, m := range composeDefault.FindAllStringSubmatch(string(compose), -1) {
		init.Env = append(init.Env, m[1]+"="+m[2])
	}
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("docker-compose.sql: %v\n%s", err, out)
	}
	server, err := url.Parse(pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]*url.URL{}
	for _, m := range composeURL.FindAllStringSubmatch(string(compose), -1) {
		u, err := url.Parse(composeDefault.ReplaceAllString(m[1], "$2"))
		if err != nil {
			t.Fatal(err)
		}
		u.Host = server.Host
		roles[u.User.Username()] = u
	}
	return roles
}

func TestCompose_RolesHaveWhatTheirServiceNeeds(t *testing.T) {
	t.Parallel()
	roles := startComposeDatabase(t)
	own, locks := roles["circulation_storage"], roles["resource_locks"]
	if len(roles) != 2 || own == nil || locks == nil {
		t.Fatalf("docker-compose.yml connects as %v, want one role for each service", roles)
	}
	t.Run("the pair lends", func(t *testing.T) {
		p := startPair(t, stack.Options{DatabaseURL: own.String(), Circulations: 2, CirculationEnv: enableLock()}, 1)
		id, patron := p.addPatron(t)
		books := p.addBooks(t, 2)
		readObject(t, p.lendBook(t, 0, books[0], patron), http.StatusCreated)
		if a := p.lendBook(t, 1, books[1], patron); a.Status != http.StatusUnprocessableEntity ||
			p.countOpenLoans(t, id) != 1 {
			t.Errorf("the other instance answered %d %s, want the limit", a.Status, a.Body)
		}
	})
	t.Run("resource-locks grants", func(t *testing.T) {
		service, err := stack.StartResourceLocks(t.Context(), locks.String(), []string{"MUTEX_ADDR=127.0.0.1:0"},
			slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := service.Stop(); err != nil {
				t.Error(err)
			}
		})
		client := stack.Client{Base: service.URL("mutex"), Header: http.Header{"X-User-Id": {"ann"}}}
		if a := callEndpoint(t, client, http.MethodPost, "/api/lock/draft/", nil); a.Status != http.StatusOK {
			t.Errorf("answered %d %s, want the lock", a.Status, a.Body)
		}
	})
	t.Run("the doctor counts the connections of other roles", func(t *testing.T) {
		const others = 5
		for range others {
			conn, err := pgx.Connect(t.Context(), locks.String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
		}
		cfg := storage.DefaultConfig()
		if err := config.Load(&cfg, []string{"DATABASE_URL=" + own.String()}); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		_ = storage.Listing{Out: &out}.Diagnose(t.Context(), cfg, time.Second) // it has warnings
		open := regexp.MustCompile(`(\d+) of \d+ are open`).FindStringSubmatch(out.String())
		if len(open) == 0 {
			t.Fatalf("got\n%s, want how many connections are open", &out)
		}
		if n, _ := strconv.Atoi(open[1]); n <= others {
			t.Errorf("%d connections are open, want those of the other role too:\n%s", n, &out)
		}
	})
	t.Run("and no more", func(t *testing.T) {
		databases := []string{own.Path, locks.Path, "/postgres", "/template1"}
		for role, u := range roles {
			for _, database := range databases {
				other := *u
				other.Path = database
				conn, err := pgx.Connect(t.Context(), other.String())
				if isOwn := database == u.Path; (err == nil) != isOwn || err != nil && !strings.Contains(err.Error(), "42501") {
					t.Errorf("%s connects to %s: %v", role, database, err)
				}
				if err != nil {
					continue
				}
				var isMore bool
				query := "SELECT rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls FROM pg_roles WHERE " +
					"rolname = current_user"
				if err := conn.QueryRow(t.Context(), query).Scan(&isMore); err != nil || isMore {
					t.Errorf("%s is more than a plain role: %t, %v", role, isMore, err)
				}
				if err := conn.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
