package postgres_test

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/resource-locks/internal/postgres/schematest"
	"checkoutlock/schemas/fault"
)

// line is a held claim of a schema, and many that wait for it.
type line struct {
	*postgres.ClaimStore
	schema *schematest.Schema
	db     *postgres.DB
	held   engine.Claim
	waits  int
}

// lineStep is how many claims newLine stores at once.
const lineStep = 500

// newLine stores a writer of /branch and n readers of /branch and a shelf.
func newLine(t *testing.T, n int) *line {
	t.Helper()
	s := schematest.New(t)
	db := s.Open("")
	l := &line{ClaimStore: postgres.NewClaimStore(db), schema: s, db: db, waits: n}
	l.held = engine.Claim{
		ID: uuid.New(), Instance: uuid.New(), Namespace: "ns", Owner: "writer",
		Resources: []engine.Resource{{Path: []string{"branch"}, Write: true}},
	}
	if err := l.StartLease(t.Context(), l.held.Instance, time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Enqueue(t.Context(), l.held); err != nil {
		t.Fatal(err)
	}
	for first := 2; first < 2+n; first += lineStep {
		for _, statement := range []string{
			`INSERT INTO {schema}.claim_resource (number, position, write, namespace, path, key)
			 SELECT n, p.position, false, 'ns', 'branch'::bytea || '\x00' || p.below,
			        '\x00' || substring(sha256('branch') FROM 1 FOR 15) || p.key
			   FROM generate_series($1::int, $2::int) n CROSS JOIN LATERAL (
			        VALUES (0, ''::bytea, ''::bytea),
			               (1, ('shelf-' || n)::bytea || '\x00',
			                '\x00' || substring(sha256(('shelf-' || n)::bytea) FROM 1 FOR 15))) p(position, below, key)`,
			`INSERT INTO {schema}.claim
			        (id, instance, number, waits_for, abandon, resources, prefixes, namespace, owner)
			 SELECT gen_random_uuid(), w.instance, n, 1, '0', 2, 5, 'ns', 'reader'
			   FROM {schema}.claim w, generate_series($1::int, $2::int) n WHERE w.namespace = 'ns' AND w.number = 1`,
		} {
			last := min(first+lineStep, 2+n) - 1
			if _, err := db.Pool().Exec(t.Context(), s.NameSchema(statement), first, last); err != nil {
				t.Fatal(err)
			}
		}
	}
	number := s.NameSchema(`UPDATE {schema}.namespace SET last_number = 1 + $1::int`)
	if _, err := db.Pool().Exec(t.Context(), number, n); err != nil {
		t.Fatal(err)
	}
	return l
}

// settle settles until the host is quick enough for a call.
func settle(
	t *testing.T, store *postgres.ClaimStore, caller uuid.UUID,
) (granted []uuid.UUID, ended []engine.ClaimInfo) {
	t.Helper()
	for {
		g, e, err := store.Settle(t.Context(), caller)
		granted, ended = append(granted, g...), append(ended, e...)
		switch {
		case err == nil:
			return granted, ended
		case !fault.Is(err, fault.Timeout) || t.Context().Err() != nil:
			t.Fatal(err)
		}
	}
}

// settleAll settles as another process until nothing more is granted or ended.
func (l *line) settleAll(t *testing.T) (granted []uuid.UUID, ended []engine.ClaimInfo) {
	t.Helper()
	store, caller := postgres.NewClaimStore(l.db), uuid.New()
	for {
		g, e := settle(t, store, caller)
		if len(g)+len(e) == 0 {
			return granted, ended
		}
		granted, ended = append(granted, g...), append(ended, e...)
	}
}

// wantHeld checks that all waiting claims are held, and that no note of the removal is left.
func (l *line) wantHeld(t *testing.T) {
	t.Helper()
	stats, err := l.Stats(t.Context(), "ns")
	if err != nil || stats.Waiting != 0 || stats.Held != l.waits {
		t.Errorf("got %+v, %v, want all %d held", stats, err, l.waits)
	}
	if notes := l.count(t, `SELECT count(*) FROM {schema}.removed_claim`); notes != 0 {
		t.Errorf("%d removed claims are noted, want none", notes)
	}
}

func (l *line) count(t *testing.T, statement string) (n int) {
	t.Helper()
	if err := l.db.Pool().QueryRow(t.Context(), l.schema.NameSchema(statement)).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestClaimStore_ReleasesALongLine(t *testing.T) {
	t.Parallel()
	const readers = 6000
	for name, release := range map[string]func(*testing.T, *line) ([]uuid.UUID, error){
		"by its holder": func(t *testing.T, l *line) ([]uuid.UUID, error) {
			t.Helper()
			return l.Withdraw(t.Context(), l.held.Instance, "ns", l.held.ID)
		},
		"by the end of its connection": func(t *testing.T, l *line) ([]uuid.UUID, error) {
			t.Helper()
			return l.Disconnect(t.Context(), l.held.Instance, "ns", l.held.ID)
		},
		"by staff": func(t *testing.T, l *line) ([]uuid.UUID, error) {
			t.Helper()
			return l.ForceWithdraw(t.Context(), l.held.Instance, "ns", l.held.ID, engine.Note{By: "eve", Reason: "stuck"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLine(t, readers)
			granted, err := release(t, l)
			if err != nil || len(granted) == 0 || len(granted) > 200 {
				t.Fatalf("granted %d, %v, want some of the first", len(granted), err)
			}
			// The process ends here, and another one goes on.
			later, ended := l.settleAll(t)
			if len(granted)+len(later) != readers || len(ended) != 0 {
				t.Errorf("granted %d and %d, ended %d, want %d granted", len(granted), len(later), len(ended), readers)
			}
			l.wantHeld(t)
			fresh, err := l.NewGrants(t.Context(), l.held.Instance)
			if err != nil || len(fresh) != len(later) {
				t.Errorf("%d new grants, %v, want the %d by the other process", len(fresh), err, len(later))
			}
		})
	}
}

// Claims of many deep paths take long to place, so that a transaction places few of them.
func TestClaimStore_ReleasesDeepClaims(t *testing.T) {
	t.Parallel()
	l := newLine(t, 0)
	deep := engine.Claim{Instance: l.held.Instance, Namespace: "ns", Owner: "reader"}
	for i := range 32 {
		path := slices.Repeat([]string{""}, engine.MaxSegments)
		path[0], path[engine.MaxSegments-1] = "branch", strconv.Itoa(i)
		deep.Resources = append(deep.Resources, engine.Resource{Path: path})
	}
	for range 60 {
		deep.ID = uuid.New()
		l.waits++
		if place, err := l.Enqueue(t.Context(), deep); err != nil || place.Held {
			t.Fatalf("got %+v, %v, want it to wait", place, err)
		}
	}
	granted, err := l.Withdraw(t.Context(), l.held.Instance, "ns", l.held.ID)
	if err != nil || len(granted) == 0 || len(granted) > 2 {
		t.Fatalf("granted %d, %v, want the first", len(granted), err)
	}
	later, _ := l.settleAll(t)
	if len(granted)+len(later) != l.waits {
		t.Errorf("granted %d and %d, want %d", len(granted), len(later), l.waits)
	}
	l.wantHeld(t)
}

// The ends of deep claims take several transactions too.
func TestClaimStore_EndsDeepClaims(t *testing.T) {
	t.Parallel()
	l := newLine(t, 0)
	instance := uuid.New()
	if err := l.StartLease(t.Context(), instance, time.Hour); err != nil {
		t.Fatal(err)
	}
	const claims = 3
	for i := range claims {
		path := slices.Repeat([]string{strconv.Itoa(i)}, engine.MaxSegments)
		q := engine.Claim{ID: uuid.New(), Instance: instance, Namespace: "ns"}
		q.Resources = slices.Repeat([]engine.Resource{{Path: path, Write: true}}, 40)
		if _, err := l.Enqueue(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.EndLease(t.Context(), instance); err != nil {
		t.Fatal(err)
	}
	for i := range claims {
		if _, ended := settle(t, l.ClaimStore, uuid.New()); len(ended) != 1 {
			t.Errorf("call %d ended %d claims, want one", i, len(ended))
		}
	}
}

// storeWriters stores 20 more held claims, which write 1000 paths each, and 100 readers of all paths.
// They have the numbers 2 to 21, and 22 to 121. The readers wait for the claim 21, which has ended.
func (l *line) storeWriters(t *testing.T) {
	t.Helper()
	for _, statement := range []string{
		`INSERT INTO {schema}.claim_resource (number, position, write, namespace, path, key)
		 SELECT n, p, true, 'ns', (n || '-' || p)::bytea || '\x00',
		        '\x00' || substring(sha256((n || '-' || p)::bytea) FROM 1 FOR 15)
		   FROM generate_series(2, 21) n, generate_series(0, 999) p
		  UNION ALL
		 SELECT n, 0, false, 'ns', '', '' FROM generate_series(22, 121) n`,
		`INSERT INTO {schema}.claim
		        (id, instance, number, waits_for, held_at, ends_at, abandon, resources, prefixes, namespace, owner)
		 SELECT gen_random_uuid(), w.instance, n, CASE WHEN n > 21 THEN 21 END,
		        CASE WHEN n <= 21 THEN clock_timestamp() END, CASE WHEN n = 21 THEN clock_timestamp() END,
		        '1 hour', CASE WHEN n > 21 THEN 1 ELSE 1000 END, CASE WHEN n > 21 THEN 1 ELSE 2000 END, 'ns', 'client'
		   FROM {schema}.claim w, generate_series(2, 121) n WHERE w.namespace = 'ns' AND w.number = 1`,
	} {
		if _, err := l.db.Pool().Exec(t.Context(), l.schema.NameSchema(statement)); err != nil {
			t.Fatal(err)
		}
	}
}

// Readers of all paths wait for one writer after the other. To place one of them takes a look at
// all paths of the writers, so that a transaction places few of them.
func TestClaimStore_PlacesReadersAboveManyPaths(t *testing.T) {
	t.Parallel()
	const readers = 100
	l := newLine(t, 0)
	l.storeWriters(t)
	for range readers {
		settle(t, l.ClaimStore, l.held.Instance)
		if l.count(t, `SELECT count(*) FROM {schema}.removed_claim`) == 0 {
			break
		}
	}
	if n := l.count(t, `SELECT count(*) FROM {schema}.claim WHERE waits_for = 20`); n != readers {
		t.Fatalf("%d readers wait for the next writer, want %d", n, readers)
	}
	claims, err := l.ListClaims(t.Context(), "ns", 20)
	if err != nil || len(claims) != 20 || claims[19].Number != 20 {
		t.Fatalf("got %d claims, %v, want those up to the next writer", len(claims), err)
	}
	began := time.Now()
	if _, err := l.Withdraw(t.Context(), l.held.Instance, "ns", claims[19].ID); err != nil {
		t.Error(err)
	}
	// A slow host places fewer of them.
	left := l.count(t, `SELECT count(*) FROM {schema}.claim WHERE waits_for = 20`)
	if took := time.Since(began); left == 0 && took > 2*time.Second { // as a release has
		t.Errorf("all readers were placed in %s, want few of them", took)
	}
}

// The claims of a process that has died leave in several transactions. None of those that
// wait is granted meanwhile, because it would stay for its Abandon.
func TestClaimStore_EndsManyClaimsOfADeadProcess(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		write   bool
		dead    int
		granted int // at most, before the process dies
	}{
		"writers, one of them granted":    {write: true, dead: 250, granted: 1},
		"readers, not all of them placed": {write: false, dead: 601, granted: 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLine(t, 0)
			instance := uuid.New()
			if err := l.StartLease(t.Context(), instance, time.Hour); err != nil {
				t.Fatal(err)
			}
			enqueue := func(instance uuid.UUID, write bool, abandon time.Duration) engine.Claim {
				t.Helper()
				q := engine.Claim{ID: uuid.New(), Instance: instance, Namespace: "ns", Abandon: abandon}
				q.Resources = []engine.Resource{{Write: write}}
				if place, err := l.Enqueue(t.Context(), q); err != nil || place.Held {
					t.Fatalf("got %+v, %v, want it to wait", place, err)
				}
				return q
			}
			for i := range tt.dead {
				abandon := time.Hour
				if i < tt.granted {
					abandon = 0
				}
				enqueue(instance, tt.write, abandon)
			}
			last := enqueue(l.held.Instance, true, time.Hour)
			granted, err := l.Withdraw(t.Context(), l.held.Instance, "ns", l.held.ID)
			if err != nil || len(granted) == 0 || len(granted) > tt.granted {
				t.Fatalf("granted %d, %v, want 1 to %d of the first", len(granted), err, tt.granted)
			}
			if err := l.EndLease(t.Context(), instance); err != nil {
				t.Fatal(err)
			}
			granted, ended := l.settleAll(t)
			if !slices.Equal(granted, []uuid.UUID{last.ID}) || len(ended) != tt.dead {
				t.Errorf("granted %v, ended %d, want the last granted and the %d before it ended", granted, len(ended), tt.dead)
			}
		})
	}
}

// A namespace that cannot be settled delays the others, and does not stop them.
func TestClaimStore_SettlesBesideFrozenNamespaces(t *testing.T) {
	t.Parallel()
	const frozen = 8
	s := schematest.New(t)
	db := s.Open("")
	store, instance := postgres.NewClaimStore(db), uuid.New()
	if err := store.StartLease(t.Context(), instance, time.Minute); err != nil {
		t.Fatal(err)
	}
	for i := range 2 * frozen {
		q := engine.Claim{ID: uuid.New(), Instance: instance, Namespace: strconv.Itoa(i)}
		q.Resources = []engine.Resource{{Write: true}}
		if _, err := store.Enqueue(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	for i := range frozen {
		freeze(t, db, `SELECT pg_advisory_xact_lock(hashtextextended($1::text, 0))`, s.Name+"/"+strconv.Itoa(i))
	}
	if err := store.EndLease(t.Context(), instance); err != nil {
		t.Fatal(err)
	}
	ended := map[string]bool{}
	for deadline := time.Now().Add(time.Minute); len(ended) < frozen && time.Now().Before(deadline); {
		_, removed, err := store.Settle(t.Context(), uuid.New())
		var joined interface{ Unwrap() []error }
		if errors.As(err, &joined) && len(joined.Unwrap()) > 1 {
			t.Errorf("a call waited for %d frozen namespaces, and no waiter is woken meanwhile", len(joined.Unwrap()))
		}
		for _, c := range removed {
			ended[c.Namespace] = true
		}
	}
	for i := range frozen {
		if !ended[strconv.Itoa(frozen+i)] {
			t.Errorf("the claim of namespace %d has not ended", frozen+i)
		}
	}
	if len(ended) != frozen {
		t.Errorf("claims of %d namespaces have ended, want %d", len(ended), frozen)
	}
}

// The log has a line when settling begins to fail, and one when it succeeds again.
func TestClaimStore_SettleFailsUntilAFrozenNamespaceIsSettled(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("")
	store, instance := postgres.NewClaimStore(db), uuid.New()
	if err := store.StartLease(t.Context(), instance, time.Minute); err != nil {
		t.Fatal(err)
	}
	q := engine.Claim{ID: uuid.New(), Instance: instance, Namespace: "ns", Resources: []engine.Resource{{Write: true}}}
	if _, err := store.Enqueue(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	thaw := freeze(t, db, `SELECT pg_advisory_xact_lock(hashtextextended($1::text, 0))`, s.Name+"/ns")
	if err := store.EndLease(t.Context(), instance); err != nil {
		t.Fatal(err)
	}
	for try := range 3 { // the namespace is left out for a second after the first
		if _, _, err := store.Settle(t.Context(), uuid.New()); !fault.Is(err, fault.Timeout) {
			t.Errorf("call %d: got %v, want %s", try, err, fault.Timeout)
		}
	}
	thaw()
	ended := 0
	for deadline := time.Now().Add(time.Minute); ended == 0 && time.Now().Before(deadline); {
		_, removed, err := store.Settle(t.Context(), uuid.New())
		if ended = len(removed); (err == nil) != (ended == 1) {
			t.Fatalf("ended %d claims with %v, want the one without an error", ended, err)
		}
	}
}
