package commit_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas/fault"
)

func TestService_CommitsBodies(t *testing.T) {
	t.Parallel()
	broken := errors.New("boom")
	for name, tt := range map[string]struct {
		out, in []byte
		stored  error
		refused bool // by the bodies
	}{
		"committed":  {out: body(t, nil), in: checkInBody(t, nil)},
		"broken":     {out: body(t, nil), in: checkInBody(t, nil), stored: broken},
		"bad bodies": {out: []byte("{"), in: []byte("{}"), stored: broken, refused: true},
	} {
		s := commit.NewService(fixedStore{outcome: commit.Committed, err: tt.stored}, func(context.Context, uuid.UUID) { t.Errorf("%s: a release was noted", name) })
		_, _, out := s.CheckOut(t.Context(), tt.out)
		_, in := s.CheckIn(t.Context(), tt.in)
		if tt.refused {
			if !fault.Is(out, fault.Malformed) || !fault.Is(in, fault.Invalid) {
				t.Errorf("%s: got %v and %v", name, out, in)
			}
		} else if !errors.Is(out, tt.stored) || !errors.Is(in, tt.stored) {
			t.Errorf("%s: got %v and %v, want %v", name, out, in, tt.stored)
		}
	}
}

func TestService_NotesTheReleaseOfALock(t *testing.T) {
	t.Parallel()
	var noted []uuid.UUID
	s := commit.NewService(fixedStore{outcome: commit.Committed, released: true}, func(_ context.Context, user uuid.UUID) { noted = append(noted, user) })
	if _, _, err := s.CheckOut(t.Context(), body(t, nil)); err != nil {
		t.Fatal(err)
	}
	if len(noted) != 1 || noted[0] == uuid.Nil {
		t.Errorf("noted %v, want the patron", noted)
	}
}
