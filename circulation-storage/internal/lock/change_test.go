package lock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

func TestService_ForceReleaseWakesTheWaiterAndKeepsTheReason(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		holder := <-d.startAcquire(d.ctx, lock.Request{UserID: uuid.New(), Holder: "desk 1"})
		waiter := d.startAcquire(d.ctx, lock.Request{UserID: holder.l.UserID, Wait: long})
		note := lock.Note{Reason: "the machine is off", By: "Ann"}
		got, err := d.ForceRelease(d.ctx, holder.l.ID, note)
		if err != nil || got != holder.l {
			t.Fatalf("got %+v, %v, want the lock as it was, %+v", got, err, holder.l)
		}
		if got := <-waiter; got.err != nil || got.took != 0 || got.l.ID == holder.l.ID {
			t.Errorf("the waiter got %+v, want a new lock without any delay", got)
		}
		if !slices.Equal(d.store.notes, []lock.Note{note}) || d.counts.released != 0 {
			t.Errorf("noted %+v, %d released by holders, want the reason and 0", d.store.notes, d.counts.released)
		}
		if _, err := d.ForceRelease(d.ctx, holder.l.ID, note); !fault.Is(err, fault.NotFound) {
			t.Errorf("again: %v, want %q", err, fault.NotFound)
		}
	})
}

func TestService_ForceReleaseRequiresAGoodReason(t *testing.T) {
	withHarness(t, func(t *testing.T, d *harness) {
		holder := <-d.startAcquire(d.ctx, lock.Request{UserID: uuid.New()})
		for _, note := range []lock.Note{
			{}, lock.NewNote(" \r\n\t ", "Ann"), {Reason: "a\x00b"}, {Reason: "why", By: "a\nb"},
		} {
			if _, err := d.ForceRelease(d.ctx, holder.l.ID, note); !fault.Is(err, fault.Invalid) {
				t.Errorf("%+v: %v, want %q", note, err, fault.Invalid)
			}
		}
		if err := d.Release(context.WithoutCancel(d.ctx), holder.l.ID); err != nil || d.store.notes != nil {
			t.Errorf("the holder releases: %v, noted %+v, want its lock still there and nothing noted", err, d.store.notes)
		}
	})
}

func TestNote_Check(t *testing.T) {
	t.Parallel()
	const most = schemas.MaxChangeReason
	for name, tt := range map[string]struct {
		reason, by string
		want       lock.Note
		wrong      []string // keys of the details
	}{
		"nothing": {},
		"white space around": {
			reason: "  stuck\r\n", by: "\tAnn ", want: lock.Note{Reason: "stuck", By: "Ann"}, wrong: nil,
		},
		"lines of a form": {
			reason: "one\r\ntwo\n\tthree", by: "", want: lock.Note{Reason: "one\ntwo\n\tthree"}, wrong: nil,
		},
		"letters of all kinds": {
			reason: "Gerät hängt, 図書館 📚", by: "Zoë Ångström", want: lock.Note{Reason: "Gerät hängt, 図書館 📚", By: "Zoë Ångström"},
			wrong: nil,
		},
		"the longest": {
			reason: strings.Repeat("ü", most), by: strings.Repeat("ü", schemas.MaxChangeName),
			want: lock.Note{Reason: strings.Repeat("ü", most), By: strings.Repeat("ü", schemas.MaxChangeName)}, wrong: nil,
		},
		"too long a reason": {
			reason: strings.Repeat("ü", most+1), by: "", want: lock.Note{}, wrong: []string{"reason"},
		},
		"too long a name": {
			reason: "", by: strings.Repeat("ü", schemas.MaxChangeName+1), want: lock.Note{}, wrong: []string{"byName"},
		},
		"NUL in the reason":            {reason: "a\x00b", by: "", want: lock.Note{}, wrong: []string{"reason"}},
		"an escape in the reason":      {reason: "a\x1b[31mb", by: "", want: lock.Note{}, wrong: []string{"reason"}},
		"a lone carriage return":       {reason: "a\rb", by: "", want: lock.Note{}, wrong: []string{"reason"}},
		"a control character above 7f": {reason: "a\u0085b", by: "", want: lock.Note{}, wrong: []string{"reason"}},
		"no UTF-8": {
			reason: "a\xffb", by: "a\xffb", want: lock.Note{}, wrong: []string{"reason", "byName"},
		},
		"a name of two lines":        {reason: "", by: "a\nb", want: lock.Note{}, wrong: []string{"byName"}},
		"a name that turns the text": {reason: "", by: "a\u202eb", want: lock.Note{}, wrong: []string{"byName"}},
	} {
		note := lock.NewNote(tt.reason, tt.by)
		err := note.Check()
		var f *fault.Error
		var wrong []string
		if errors.As(err, &f) {
			for _, d := range f.Details {
				wrong = append(wrong, d.Parameters[0].Key)
			}
		}
		if !slices.Equal(wrong, tt.wrong) || (err != nil) != (len(tt.wrong) > 0) {
			t.Errorf("%s: %v, want %v to be wrong", name, err, tt.wrong)
		}
		if err == nil && note != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, note, tt.want)
		}
		if needs := note.CheckWithReason(); (needs == nil) != (err == nil && tt.want.Reason != "") {
			t.Errorf("%s where a reason is needed: %v", name, needs)
		}
	}
}
