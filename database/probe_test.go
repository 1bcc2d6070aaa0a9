package database

import (
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestLackWatch_ProbeEndsOnlyTheLackThatItWasFor(t *testing.T) {
	t.Parallel()
	limit := &pgconn.PgError{Code: configurationLimit, SeverityUnlocalized: "ERROR"}
	full := lacks[diskFull]
	for _, tt := range []struct {
		name        string
		lack, probe string // now, and when the probe began
		err         error
		want        string
	}{
		{name: "a success", lack: full, probe: full},
		{name: "a success for another lack", lack: lateCommits, probe: full, want: lateCommits},
		{name: "a limit of temporary files", lack: full, probe: full, err: limit},
		{name: "a limit of temporary files, with another lack", lack: lateCommits, err: limit, want: lateCommits},
		{name: "a limit of temporary files, with no lack", err: limit},
	} {
		w := newLackWatch(t.Context(), &DB{log: slog.New(slog.DiscardHandler)})
		w.lack, w.refused = tt.lack, true
		w.noteProbe(tt.probe, tt.err)
		if got := w.current(); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
		if want := tt.err == nil; w.refused != want {
			t.Errorf("%s: a refusal is to be looked into: %t, want %t", tt.name, w.refused, want)
		}
	}
}

func TestLackWatch_ProbesUntilNothingIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		refused bool
		lack    string
		want    bool
	}{
		{name: "nothing", want: true},
		{name: "a refusal since the last probe", refused: true},
		{name: "a full disk", lack: lacks[diskFull]},
	} {
		w := newLackWatch(t.Context(), &DB{})
		w.looking, w.refused, w.lack = true, tt.refused, tt.lack
		if got := w.hasSeenEnough(); got != tt.want || w.looking == tt.want {
			t.Errorf("%s: it has seen enough: %t, and looks: %t", tt.name, got, w.looking)
		}
	}
}
