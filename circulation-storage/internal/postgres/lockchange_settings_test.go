package postgres_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// entryOf is a settings entry as /settings/entries accepts it.
func entryOf(id uuid.UUID, key, user, value string) []byte {
	if user != "" {
		user = fmt.Sprintf(`,"userId":%q`, user)
	}
	return fmt.Appendf(nil, `{"id":%q,"scope":"mod-circulation","key":%q%s,"value":%s}`, id, key, user, value)
}

// entries writes settings entries as the generic endpoint does.
type entries struct {
	l     harness
	store *postgres.RecordStore
}

func (l harness) entries() entries { return entries{l, postgres.NewRecordStore(l.db, func() {})} }

func (e entries) record(body []byte) records.Record {
	e.l.t.Helper()
	r, err := records.SettingsEntry.Parse(body, "")
	if err != nil {
		e.l.t.Fatal(err)
	}
	return r
}

func (e entries) create(ctx context.Context, body []byte) error {
	_, err := e.store.Create(ctx, records.SettingsEntry, e.record(body))
	return err
}

func (e entries) update(ctx context.Context, body []byte) error {
	return e.store.Update(ctx, records.SettingsEntry, e.record(body))
}

func (e entries) delete(ctx context.Context, id uuid.UUID) error {
	return e.store.Delete(ctx, records.SettingsEntry, id.String())
}

func TestLockChange_EveryChangeOfTheSettingsIsNoted(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	const ours = "checkoutLockFeature"
	const (
		off   = `{"lockTtl":300}`
		on    = `{"checkOutLockFeatureEnabled":true,"lockTtl":3000}`
		folio = `"{\"checkOutLockFeatureEnabled\":false}"`
	)
	e, id, other, staff := l.entries(), uuid.New(), uuid.New(), uuid.New()
	type want struct{ before, after, reason, by string }
	ctx := l.by(staff, "7/settings")
	for _, step := range []struct {
		name string
		do   func() error
		want *want // nil is no note
	}{
		{name: "removing nothing", do: func() error { return l.settings.Remove(ctx) }, want: nil},
		{
			name: "another entry", do: func() error { return e.create(ctx, entryOf(other, "otherFeature", "", off)) }, want: nil,
		},
		{
			name: "a user's entry", do: func() error { return e.create(ctx, entryOf(uuid.New(), ours, staff.String(), off)) },
			want: nil,
		},
		{name: "creating it", do: func() error { return e.create(ctx, entryOf(id, ours, "", off)) }, want: &want{after: off}},
		{
			name: "creating it again", do: func() error { return wantRefusal(e.create(ctx, entryOf(uuid.New(), ours, "", on))) },
			want: nil,
		},
		{
			name: "changing it", do: func() error { return e.update(ctx, entryOf(id, ours, "", on)) },
			want: &want{before: off, after: on},
		},
		{
			name: "the same again", do: func() error { return e.update(ctx, entryOf(id, ours, "", on)) },
			want: &want{before: on, after: on},
		},
		{name: "our endpoint", do: func() error {
			_, err := l.settings.Change(ctx, schemas.LockSettingsChange{
				Value: []byte(folio), Reason: "it's Monday", ByName: "Ann",
			})
			return err
		}, want: &want{on, folio, "it's Monday", "Ann"}},
		{name: "an old version", do: func() error {
			_, err := l.settings.Change(ctx, schemas.LockSettingsChange{Value: []byte(on), Version: "0"})
			return wantRefusal(err)
		}, want: nil},
		{
			name: "renaming it away", do: func() error { return e.update(ctx, entryOf(id, "x", "", off)) },
			want: &want{before: folio},
		},
		{name: "changing what it was", do: func() error { return e.update(ctx, entryOf(id, "x", "", on)) }, want: nil},
		{
			name: "renaming it back", do: func() error { return e.update(ctx, entryOf(id, ours, "", on)) },
			want: &want{after: on},
		},
		{name: "deleting another", do: func() error { return e.delete(ctx, other) }, want: nil},
		{name: "deleting it", do: func() error { return e.delete(ctx, id) }, want: &want{before: on}},
		{name: "deleting nothing", do: func() error { return wantRefusal(e.delete(ctx, id)) }, want: nil},
		{
			name: "our endpoint anew", do: func() error { _, err := l.settings.Change(ctx, changeTo(off, "")); return err },
			want: &want{after: off},
		},
		{name: "removing it", do: func() error { return l.settings.Remove(ctx) }, want: &want{before: off}},
	} {
		before := len(l.noted())
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		news := l.noted()[before:]
		switch {
		case step.want == nil && len(news) == 0:
		case step.want == nil || len(news) != 1:
			t.Errorf("%s: noted %+v, want %+v", step.name, news, step.want)
		default:
			got, w := news[0], step.want
			if !sameJSON(t, got.Before, w.before) || !sameJSON(t, got.After, w.after) {
				t.Errorf("%s: noted %s to %s, want %s to %s", step.name, got.Before, got.After, w.before, w.after)
			}
			if got.Kind != schemas.ChangeSettings || got.UserID != staff || got.RequestID != "7/settings" || got.Lock != nil ||
				got.Note != (lock.Note{Reason: w.reason, By: w.by}) {
				t.Errorf("%s: noted %+v, want %+v", step.name, got, w)
			}
		}
	}
}

// wantRefusal returns nil for a fault of the caller, and an error for success.
func wantRefusal(err error) error {
	if code := fault.CodeOf(err); code == "" || code == fault.Internal {
		return fmt.Errorf("got %w, want a refusal", err)
	}
	return nil
}

// Settings must not change if the note fails.
func TestLockChange_SettingsDoNotChangeWithoutANote(t *testing.T) {
	t.Parallel()
	id := uuid.New()
	for name, change := range map[string]func(harness) error{
		"our endpoint": func(l harness) error {
			_,
				err := l.settings.Change(l.ctx(), changeTo(`{"lockTtl":500}`, ""))
			return err
		},
		"removal": func(l harness) error { return l.settings.Remove(l.ctx()) },
		"PUT": func(l harness) error {
			return l.entries().update(l.ctx(), entryOf(id, "checkoutLockFeature", "", `{"lockTtl":500}`))
		},
		"DELETE": func(l harness) error { return l.entries().delete(l.ctx(), id) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newHarness(t)
			if err := l.entries().create(l.ctx(), entryOf(id, "checkoutLockFeature", "", `{"lockTtl":300}`)); err != nil {
				t.Fatal(err)
			}
			before := l.state()
			l.refuseNotes()
			if err := change(l); !fault.Is(err, fault.Internal) {
				t.Errorf("got %v, want %q", err, fault.Internal)
			}
			if after := l.state(); !reflect.DeepEqual(after, before) || len(l.noted()) != 1 {
				t.Errorf("the settings are %+v %s, %d changes noted, want all as before: %s", after, after.Entry, len(l.noted()),
					before.Entry)
			}
		})
	}
}

// Each of the concurrent changes is noted with the value that the one before it left.
func TestLockChange_ConcurrentChangesMakeOneChain(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	id := uuid.New()
	if err := l.entries().create(l.ctx(), entryOf(id, "checkoutLockFeature", "", `{"lockTtl":300}`)); err != nil {
		t.Fatal(err)
	}
	turns := make(chan int, 24)
	for i := range cap(turns) {
		turns <- i
	}
	got := parallel(cap(turns), func() error {
		i := <-turns
		value := fmt.Sprintf(`{"lockTtl":%d}`, 1000+i)
		switch i % 4 {
		case 0:
			return l.entries().update(l.ctx(), entryOf(id, "checkoutLockFeature", "", value))
		case 1:
			return l.settings.Remove(l.ctx())
		}
		_, err := l.settings.Change(l.ctx(), changeTo(value, ""))
		return err
	})
	if got[""]+got[fault.NotFound] != cap(turns) { // an entry that is gone meanwhile
		t.Fatalf("got %v", got)
	}
	chain := l.noted()
	for i, c := range chain[1:] {
		if !sameJSON(t, c.Before, string(chain[i].After)) {
			t.Errorf("change %d is from %s, but the one before left %s", i+1, c.Before, chain[i].After)
		}
	}
	state := l.state()
	last := chain[len(chain)-1].After
	if state.Entry == nil && last != nil || state.Entry != nil &&
		!sameJSON(t, last, fmt.Sprintf(`{"lockTtl":%v}`, field(t, state.Entry, "value", "lockTtl"))) {
		t.Errorf("the chain ends with %s, stored is %s", last, state.Entry)
	}
	if len(chain) < 13 { // the 12 changes of the settings endpoint, and the entry's creation
		t.Errorf("%d changes noted, want 13 or more", len(chain))
	}
}
