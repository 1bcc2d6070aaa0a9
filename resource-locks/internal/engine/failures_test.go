package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/schemas/fault"
)

func TestClaims_LogsAnOutageOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, log := enginetest.NewStore(), &bytes.Buffer{}
		claims := engine.NewClaims(store, &events{}, slog.New(slog.NewTextHandler(log, nil)))
		stop := enginetest.RunLoops(claims)
		for range 2 {
			synctest.Wait()
			store.Fail(fault.New(fault.Unavailable, "away"))
			<-time.After(time.Minute)
			store.Fail(nil)
			<-time.After(time.Minute)
		}
		stop()
		for _, line := range []string{`"keeping the lease failed and is tried again"`, `"keeping the lease succeeds again"`} {
			if n := strings.Count(log.String(), "msg="+line); n != 2 {
				t.Errorf("%s is logged %d times, want once for each outage", line, n)
			}
		}
		if n := strings.Count(log.String(), "\n"); n > 30 {
			t.Errorf("two outages of a minute made %d lines:\n%.3000s", n, log)
		}
	})
}

func TestLevelOf(t *testing.T) {
	t.Parallel()
	away := fault.New(fault.Unavailable, "away")
	_, noLease := engine.NewClaims(enginetest.NewStore(), engine.NewRecent(1), slog.New(slog.DiscardHandler)).
		Lock(t.Context(), "ns", "client", 0, []engine.Resource{{}})
	for _, tt := range []struct {
		name   string
		err    error
		logged bool // the outage
		want   slog.Level
	}{
		{name: "an outage that is logged", err: away, logged: true, want: slog.LevelDebug},
		{name: "an outage that is not logged", err: away, want: slog.LevelWarn},
		{name: "no lease, which is logged once for all", err: noLease, want: slog.LevelDebug},
		{name: "a time-out", err: fault.New(fault.Timeout, "late"), logged: true, want: slog.LevelWarn},
		{name: "a caller that left", err: fmt.Errorf("counting claims: %w", context.Canceled), want: slog.LevelDebug},
	} {
		if got := engine.LevelOf(tt.err, func() bool { return tt.logged }); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}
