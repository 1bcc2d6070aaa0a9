package database

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/devpostgres/testserver"
)

// In a switchover behind a proxy some attempts lead to the old primary for a moment.
func TestConnectionWatch_TakesAlternatingAttemptsForOneOutage(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	w := &connectionWatch{servers: &servers{}, log: slog.New(slog.NewTextHandler(&lines, nil)), settle: time.Hour}
	conn, err := pgx.Connect(t.Context(), testserver.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	attempt := func(result pgx.TraceConnectEndData) {
		w.TraceConnectEnd(w.TraceConnectStart(t.Context(), pgx.TraceConnectStartData{}), result)
	}
	made, failed := pgx.TraceConnectEndData{Conn: conn}, pgx.TraceConnectEndData{Err: io.EOF}
	for range 3 {
		attempt(made)
		attempt(failed)
	}
	lost, back := strings.Count(lines.String(), "is lost"), strings.Count(lines.String(), "is back")
	if lost != 1 || back != 1 || !w.isConnected() {
		t.Errorf("%d losses and %d returns are logged, want one each\n%s", lost, back, lines.String())
	}
	w.settle = 0
	for range 2 {
		attempt(failed)
		if w.isConnected() || !w.servers.left {
			t.Errorf("after a failure: connected %t, begins with another host: %t", w.isConnected(), w.servers.left)
		}
		attempt(made)
		if !w.isConnected() || w.servers.left {
			t.Errorf("after a success: connected %t, begins with another host: %t", w.isConnected(), w.servers.left)
		}
	}
}

func TestServers_LeaveTheLastHostAlone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		host       string
		left       bool // before
		want, last bool // left after it, and whether that was the last host
	}{
		{name: "the last host", host: "a:1", want: true, last: true},
		{name: "a host before the last", host: "b:1"},
		{name: "a host before, after the last was left", host: "b:1", left: true, want: true},
	} {
		s := servers{last: "a:1", left: tt.left}
		if last := s.leave(tt.host); last != tt.last || s.left != tt.want {
			t.Errorf("%s: got %t, and begins with another host: %t", tt.name, last, s.left)
		}
	}
}
