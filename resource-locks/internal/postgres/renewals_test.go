package postgres_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/resource-locks/internal/postgres/schematest"
	"checkoutlock/schemas/fault"
)

// acquireKeys returns a call for each key, after each was granted.
func acquireKeys(t *testing.T, store *postgres.LockStore, names ...string) []engine.Acquire {
	t.Helper()
	asked := make([]engine.Acquire, len(names))
	for i, name := range names {
		asked[i] = engine.Acquire{Key: engine.Key{Namespace: "ns", Name: name}, Owner: "ann", TTL: time.Hour}
		if g, err := store.Acquire(t.Context(), asked[i]); err != nil || g.Outcome != engine.Granted {
			t.Fatalf("got %+v, %v", g, err)
		}
	}
	return asked
}

func TestRenewals_OnlyRenew(t *testing.T) {
	t.Parallel()
	for mode, parameters := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := schematest.New(t)
			db := s.Open(parameters)
			store := postgres.NewLockStore(db)
			asked := acquireKeys(t, store, "z", "released", "ä", "stolen", "")
			for _, i := range []int{1, 3} {
				if r, err := store.Release(t.Context(), asked[i].Key, "ann"); err != nil || r.Outcome != engine.Released {
					t.Fatalf("got %s, %v", r.Outcome, err)
				}
			}
			stolen := asked[3]
			stolen.Owner = "bob"
			if _, err := store.Acquire(t.Context(), stolen); err != nil {
				t.Fatal(err)
			}
			for i := range asked {
				asked[i].Value, asked[i].TTL = asked[i].Name, 2*time.Hour
			}
			asked = append(asked, asked[0], engine.Acquire{
				Key: engine.Key{Namespace: "ns", Name: "never locked"}, Owner: "ann", TTL: time.Hour,
			})
			renewed, err := store.SendRenewals(t.Context(), asked)
			if err != nil || len(renewed) != 3 {
				t.Fatalf("got %+v, %v, want three renewed", renewed, err)
			}
			for i, l := range renewed {
				if stored, err := store.Fetch(t.Context(), asked[i].Key); err != nil || stored.ID != l.ID ||
					stored.Value != asked[i].Name ||
					!stored.ExpiresAt.Equal(l.RenewedAt.Add(2*time.Hour)) || !l.ExpiresAt.Equal(stored.ExpiresAt) {
					t.Errorf("%q: got %+v, stored %+v, %v", asked[i].Name, l, stored, err)
				}
			}
			var transactions int
			statement := `SELECT count(DISTINCT xmin::text) FROM ` + s.Name +
				`.lock WHERE expires_at > clock_timestamp() + interval '90 minutes'`
			if err := db.Pool().QueryRow(t.Context(), statement).Scan(&transactions); err != nil || transactions != 1 {
				t.Errorf("the group took %d transactions, %v, want one", transactions, err)
			}
		})
	}
}

// A statement that the server refuses has no columns.
func TestRenewals_RefusedGroupIsAFault(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("")
	store := postgres.NewLockStore(db)
	asked := acquireKeys(t, store, "a", "b")
	if _, err := db.Pool().Exec(t.Context(), s.NameSchema(`
		CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
		CREATE TRIGGER refuse BEFORE UPDATE ON {schema}.lock FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse()`),
		pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	for n := range asked {
		if renewed, err := store.SendRenewals(t.Context(), asked[:n+1]); !fault.Is(err, fault.Internal) || len(renewed) != 0 {
			t.Errorf("a group of %d: got %+v, %v, want a fault", n+1, renewed, err)
		}
	}
}

func TestRenewals_KeepTheRequestsOfEachLock(t *testing.T) {
	t.Parallel()
	store := postgres.NewLockStore(schematest.New(t).Open(""))
	asked := acquireKeys(t, store, "a", "b", "c")
	for _, a := range asked {
		if _, err := store.Ask(t.Context(), a.Key, engine.AskedFor{By: "who wants " + a.Name}); err != nil {
			t.Fatal(err)
		}
	}
	renewed, err := store.SendRenewals(t.Context(), asked)
	if err != nil || len(renewed) != len(asked) {
		t.Fatalf("got %+v, %v, want all renewed", renewed, err)
	}
	for i, l := range renewed {
		if len(l.Requests) != 1 || l.Requests[0].By != "who wants "+asked[i].Name {
			t.Errorf("%s: got %+v", asked[i].Name, l.Requests)
		}
	}
}

func TestRenewals_FrozenRowDelaysNoOther(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("")
	store := postgres.NewLockStore(db)
	asked := acquireKeys(t, store, "frozen", "a", "b", "c", "d", "e", "f", "g")
	freeze(t, db, `SELECT FROM `+s.Name+`.lock WHERE name = 'frozen' FOR UPDATE`)
	frozen, tries := make(chan error, soonTries), 0
	wantSoon(t, "renewals beside the frozen one", func(int) {
		tries++
		var others sync.WaitGroup
		for _, a := range asked[1:] {
			others.Go(func() {
				if g, err := store.Acquire(t.Context(), a); err != nil || g.Outcome != engine.Renewed {
					t.Errorf("%s: %+v, %v", a.Name, g, err)
				}
			})
		}
		go func() {
			_, err := store.Acquire(t.Context(), asked[0])
			frozen <- err
		}()
		others.Wait()
	})
	for range tries {
		if err := <-frozen; !fault.Is(err, fault.Timeout) {
			t.Errorf("the frozen one: %v, want %q", err, fault.Timeout)
		}
	}
}

// TestRenewals_LeavingLeaderFailsNoOther has one connection, which the test holds. The leaders
// of two groups leave before they get it.
func TestRenewals_LeavingLeaderFailsNoOther(t *testing.T) {
	t.Parallel()
	db := schematest.New(t).OpenAlone(2) // one of them is for lists
	store := postgres.NewLockStore(db)
	asked := acquireKeys(t, store, "a", "b", "c")
	release := db.HoldConnection(t)
	defer release() // a repeat does nothing
	var running sync.WaitGroup
	var leave [2]context.CancelFunc
	for i := range 3 {
		ctx := t.Context()
		if i < len(leave) {
			ctx, leave[i] = context.WithCancel(ctx)
		}
		running.Go(func() {
			g, err := store.Acquire(ctx, asked[i])
			if i == 2 && (err != nil || g.Outcome != engine.Renewed) {
				t.Errorf("the one that stays got %+v, %v", g, err)
			}
		})
		waitFor(t, "a place in the next group", func() bool { return store.WaitingRenewals() == i })
	}
	for i := range leave {
		leave[i]()
		waitFor(t, "the next leader", func() bool { return store.WaitingRenewals() == 1-i })
	}
	release()
	running.Wait()
}

// TestRenewals_MemberEndsAtItsDeadline stops a renewal in its statement until one that waits
// for it has ended.
func TestRenewals_MemberEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("")
	store := postgres.NewLockStore(db)
	asked := acquireKeys(t, store, "a", "b", "c")
	exec := func(statement string) {
		t.Helper()
		if _, err := db.Pool().Exec(t.Context(), strings.ReplaceAll(statement, "{schema}", s.Name)); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE SEQUENCE {schema}.begun;
		CREATE SEQUENCE {schema}.gate;
		CREATE FUNCTION {schema}.await() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			PERFORM nextval('{schema}.begun');
			WHILE NOT (SELECT is_called FROM {schema}.gate) LOOP PERFORM pg_sleep(0.001); END LOOP; RETURN NEW; END $$;
		CREATE TRIGGER await BEFORE UPDATE ON {schema}.lock FOR EACH ROW EXECUTE FUNCTION {schema}.await()`)
	renew := func(ctx context.Context, i int) <-chan error {
		asked[i].TTL = 2 * time.Hour
		ended := make(chan error, 1)
		go func() {
			_, err := store.Acquire(ctx, asked[i])
			ended <- err
		}()
		return ended
	}
	first := renew(t.Context(), 0)
	waitFor(t, "the first group", func() (begun bool) {
		query := "SELECT is_called FROM " + s.Name + ".begun"
		if err := db.Pool().QueryRow(t.Context(), query).Scan(&begun); err != nil {
			t.Fatal(err)
		}
		return begun
	})
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := <-renew(short, 1); !fault.Is(err, fault.Timeout) {
		t.Errorf("a member of the next group: %v, want %s", err, fault.Timeout)
	}
	stays := renew(t.Context(), 2)
	waitFor(t, "the next group", func() bool { return store.WaitingRenewals() == 1 })
	exec(`SELECT nextval('{schema}.gate')`)
	for name, ended := range map[string]<-chan error{"the first": first, "the member that stays": stays} {
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i, renewed := range []bool{true, false, true} {
		l, err := store.Fetch(t.Context(), asked[i].Key)
		if err != nil || l.ExpiresAt.Sub(l.RenewedAt) == 2*time.Hour != renewed {
			t.Errorf("%s: %+v, %v, want it renewed: %t", asked[i].Name, l, err, renewed)
		}
	}
}
