package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

func (l harness) changes() *postgres.LockChangeStore { return postgres.NewLockChangeStore(l.db) }

// noted returns all changes of the tenant, oldest first.
func (l harness) noted() []lock.Change {
	l.t.Helper()
	newest, total, err := l.changes().List(l.ctx(), "", 0, 1000)
	if err != nil || total != len(newest) {
		l.t.Fatalf("%d of %d changes, %v", len(newest), total, err)
	}
	var oldest []lock.Change
	for i := range newest {
		oldest = append(oldest, newest[len(newest)-1-i])
	}
	return oldest
}

// by is the desk's context with a member of staff in it.
func (l harness) by(id uuid.UUID, requestID string) context.Context {
	return okapi.NewContext(l.ctx(), okapi.Call{UserID: id.String(), RequestID: requestID})
}

func TestLockChange_ForcedReleaseIsNotedWithTheLock(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	staff := uuid.New()
	got, _, err := l.locks.Acquire(l.ctx(), lock.Request{
		UserID: uuid.New(), TTL: 90 * time.Second, AcquisitionID: uuid.New(), Holder: "desk 1",
		OkapiRequestID: "1/circulation",
	})
	if err != nil {
		t.Fatal(err)
	}
	note := lock.Note{Reason: "it's off;\nDROP TABLE check_out_lock; --", By: "Ann"}
	start := time.Now()
	released, err := l.locks.ForceRelease(l.by(staff, "1/release"), got.ID, note)
	if err != nil || released.Age < got.Age {
		t.Fatalf("released %+v, %v, want %+v", released, err, got)
	}
	changes := l.noted()
	if len(changes) != 1 || changes[0].ID == uuid.Nil || changes[0].Date.Sub(start).Abs() > time.Minute {
		t.Fatalf("got %+v, want one current change", changes)
	}
	c := changes[0]
	if c.Lock == nil || c.Lock.Age < released.Age || c.Lock.Age > released.Age+time.Minute {
		t.Fatalf("noted the lock %+v, want %+v", c.Lock, released)
	}
	released.Age = c.Lock.Age
	want := lock.Change{
		ID: c.ID, Date: c.Date, Kind: schemas.ChangeRelease, UserID: staff, Note: note, RequestID: "1/release",
		Lock: &released,
	}
	got.Age = released.Age
	if !reflect.DeepEqual(c, want) || released != got || got.OkapiRequestID != "1/circulation" {
		t.Errorf("noted %+v with %+v, want %+v with %+v", c, c.Lock, want, got)
	}
}

func TestLockChange_OutdatedLockWithoutHolderIsNoted(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	got, _, err := l.locks.Acquire(l.ctx(), lock.Request{UserID: uuid.New()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.locks.ForceRelease(l.ctx(), got.ID, lock.Note{Reason: "tidy"}); err != nil {
		t.Fatal(err)
	}
	c := l.noted()[0]
	if c.UserID != uuid.Nil || c.Note.By != "" || c.RequestID != "" || !c.Lock.Outdated || c.Lock.Holder != "" ||
		c.Lock.AcquisitionID != uuid.Nil || c.Lock.OkapiRequestID != "" {
		t.Errorf("noted %+v with %+v, want an outdated lock and nothing about who", c, c.Lock)
	}
}

// A lock and the note of its release go together: there is neither one alone.
func TestLockChange_NoForcedReleaseWithoutANote(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	held := l.lock(uuid.New())
	l.refuseNotes()
	if _, err := l.locks.ForceRelease(l.ctx(), held, lock.Note{Reason: "why"}); !fault.Is(err, fault.Internal) {
		t.Errorf("got %v, want %q", err, fault.Internal)
	}
	if _, err := l.locks.Get(l.ctx(), held); err != nil {
		t.Errorf("the lock went without a note: %v", err)
	}
	if _, err := l.locks.ForceRelease(l.ctx(), uuid.New(), lock.Note{Reason: "why"}); !fault.Is(err, fault.NotFound) {
		t.Errorf("a lock that is none: %v, want %q", err, fault.NotFound)
	}
	if got := l.noted(); len(got) != 0 {
		t.Errorf("noted %+v, want nothing", got)
	}
}

// refuseNotes makes every note fail that is written from now on.
func (l harness) refuseNotes() {
	l.t.Helper()
	l.exec(`ALTER TABLE {schema}.check_out_lock_change ADD CONSTRAINT refused CHECK (false) NOT VALID`)
}

func TestLockChange_HolderOfAReleasedLockCannotCommit(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	item := l.addItem("Available", "")
	c := l.withLock(uuid.New(), item)
	if _, err := l.locks.ForceRelease(l.ctx(), c.lock, lock.Note{Reason: "stuck"}); err != nil {
		t.Fatal(err)
	}
	got := <-l.start(c)
	if !fault.Is(got.err, fault.LockLost) || l.count(`SELECT count(*) FROM {schema}.loan`) != 0 {
		t.Errorf("got %s, %v, want %q and no loan", got.outcome, got.err, fault.LockLost)
	}
}

func TestLockChange_ForcedReleaseWaitsForACommit(t *testing.T) {
	t.Parallel()
	ctx, store, table := newLockStore(t)
	l, _, err := store.Acquire(ctx, lock.Request{UserID: uuid.New(), TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	tx := commitInFlight(ctx, t, table, l.ID)
	released := make(chan error, 1)
	go func() {
		_, err := store.ForceRelease(ctx, l.ID, lock.Note{Reason: "stuck"})
		released <- err
	}()
	waitUntilBlocked(ctx, t, table)
	// The holder releases before the forced release, which waits.
	if _, err := tx.Exec(ctx, `DELETE FROM `+table.name()+` WHERE id = $1`, l.ID); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-released; !fault.Is(err, fault.NotFound) {
		t.Errorf("release by force after the holder's own: %v, want %q", err, fault.NotFound)
	}
	if _, total, err := postgres.NewLockChangeStore(table.db).List(ctx, "", 0, 1); err != nil || total != 0 {
		t.Errorf("%d changes noted, %v, want none", total, err)
	}
}

func TestLockChange_Pages(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	if got, total, err := l.changes().List(l.ctx(), "", 0, 10); err != nil || total != 0 || len(got) != 0 {
		t.Errorf("without changes: %+v, %d, %v", got, total, err)
	}
	for i := range 5 { // as kinds: settings, release, settings, release, settings
		var err error
		if i%2 == 0 {
			_, err = l.settings.Change(l.ctx(), changeTo(fmt.Sprintf(`{"lockTtl":%d}`, 300+i), ""))
		} else {
			_, err = l.locks.ForceRelease(l.ctx(), l.lock(uuid.New()), lock.Note{Reason: "why"})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	all := l.noted()
	for _, tt := range []struct {
		kind          string
		offset, limit int
		want          []int // indexes into all
		total         int
	}{
		{kind: "", offset: 0, limit: 10, want: []int{4, 3, 2, 1, 0}, total: 5},
		{kind: "", offset: 0, limit: 2, want: []int{4, 3}, total: 5},
		{kind: "", offset: 3, limit: 2, want: []int{1, 0}, total: 5},
		{kind: "", offset: 5, limit: 2, want: nil, total: 5},
		{kind: "", offset: 2_000_000_000, limit: 200, want: nil, total: 5},
		{kind: schemas.ChangeSettings, offset: 0, limit: 10, want: []int{4, 2, 0}, total: 3},
		{kind: schemas.ChangeSettings, offset: 1, limit: 1, want: []int{2}, total: 3},
		{kind: schemas.ChangeRelease, offset: 0, limit: 10, want: []int{3, 1}, total: 2},
		{kind: schemas.ChangeRelease, offset: 2, limit: 10, want: nil, total: 2},
		{kind: "x' OR '1'='1", offset: 0, limit: 10, want: nil, total: 0},
	} {
		got, total, err := l.changes().List(l.ctx(), tt.kind, tt.offset, tt.limit)
		var want []lock.Change
		for _, i := range tt.want {
			want = append(want, all[i])
		}
		if err != nil || total != tt.total || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: got %+v, %d in all, %v", tt, got, total, err)
		}
	}
}

func TestLockChange_PatronsOfOldReleasesAreRemoved(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	const age = 30 * 24 * time.Hour
	if _, err := l.settings.Change(l.ctx(), changeTo(`{"lockTtl":300}`, "")); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if _, err := l.locks.ForceRelease(l.ctx(), l.lock(uuid.New()), lock.Note{Reason: "why"}); err != nil {
			t.Fatal(err)
		}
	}
	before := l.noted()
	l.exec(`UPDATE {schema}.check_out_lock_change SET changed_date = changed_date - $1::interval - interval '1 hour' `+
		`WHERE id <> $2`, age, before[4].ID)
	l.exec(`UPDATE {schema}.check_out_lock_change SET changed_date = changed_date + interval '2 hours' WHERE id = $1`,
		before[3].ID)
	busy := l.begin(`SELECT FROM {schema}.check_out_lock_change WHERE id = $1 FOR UPDATE`, before[1].ID)
	for i, want := range []int{1, 0, 1, 0} {
		if i == 2 {
			if err := busy.Rollback(l.ctx()); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := l.changes().BlankReleases(l.ctx(), age, 1); err != nil || n != want {
			t.Errorf("turn %d: %d, %v, want %d", i, n, err, want)
		}
	}
	for i, c := range l.noted() {
		if c.Kind == schemas.ChangeSettings {
			continue
		}
		gone := c.ID != before[3].ID && c.ID != before[4].ID
		if c.Lock == nil || (c.Lock.UserID == uuid.Nil) != gone || c.Note.Reason != "why" || c.Lock.ID == uuid.Nil {
			t.Errorf("change %d is %+v with %+v, want its patron gone: %t", i, c, c.Lock, gone)
		}
	}
}

// Through PgBouncer, pgx does not prepare statements, so every parameter needs its type in
// the statement.
func TestLockChange_WithoutPreparedStatements(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	plain := l.on(openWith(t, pooled))
	plain.db = l.db
	if _, err := plain.settings.Change(l.ctx(), changeTo(`{"lockTtl":300}`, "")); err != nil {
		t.Fatal(err)
	}
	if err := plain.settings.Remove(l.ctx()); err != nil {
		t.Fatal(err)
	}
	if _, err := plain.locks.ForceRelease(l.by(uuid.New(), "r"), l.lock(uuid.New()),
		lock.Note{Reason: "why"}); err != nil {
		t.Fatal(err)
	}
	changes := postgres.NewLockChangeStore(openWith(t, pooled))
	got, total, err := changes.List(l.ctx(), "", 0, 10)
	if err != nil || total != 3 || !sameJSON(t, got[1].Before, `{"lockTtl":300}`) || got[1].After != nil {
		t.Errorf("got %+v, %d in all, %v", got, total, err)
	}
	if n, err := changes.BlankReleases(l.ctx(), 0, 10); err != nil || n != 1 {
		t.Errorf("%d patrons removed, %v, want 1", n, err)
	}
}

// sameJSON compares meanings; want "" is no document.
func sameJSON(t *testing.T, got json.RawMessage, want string) bool {
	t.Helper()
	if got == nil || want == "" {
		return got == nil && want == ""
	}
	var a, b any
	if json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(want), &b) != nil {
		t.Fatalf("no JSON: %s, %s", got, want)
	}
	return reflect.DeepEqual(a, b)
}
