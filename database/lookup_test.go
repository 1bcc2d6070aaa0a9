package database

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"syscall"
	"testing"
	"time"
)

// goTimeout is shorter than Go's own wait for one answer.
const goTimeout = 4 * time.Second

// unknownName is the code of an answer about a name that does not exist.
const unknownName = 3

func TestResolver(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		server       nameServer
		found        bool
		absent, lost bool // which error
	}{
		"the first answer is lost": {server: nameServer{lost: 1}, found: true},
		"all answers are lost":     {server: nameServer{lost: 1000}, lost: true},
		"an unknown name":          {server: nameServer{code: unknownName}, absent: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newResolver(goTimeout/10, tt.server.start(t))
			r.PreferGo = true
			start := time.Now()
			addrs, err := r.LookupHost(t.Context(), "db.test.")
			if took := time.Since(start); took > goTimeout {
				t.Errorf("it took %s", took)
			}
			if tt.found {
				if err != nil || len(addrs) != 1 || addrs[0] != "127.0.0.1" {
					t.Errorf("got %v, %v", addrs, err)
				}
				return
			}
			dns, ok := errors.AsType[*net.DNSError](err)
			if !ok || dns.Name != "db.test." || dns.IsTimeout != tt.lost || dns.IsNotFound != tt.absent {
				t.Errorf("got %v, %#v", addrs, err)
			}
		})
	}
}

func TestResolver_EndsWithItsCaller(t *testing.T) {
	t.Parallel()
	r := newResolver(2*goTimeout, (&nameServer{lost: 1000}).start(t))
	r.PreferGo = true
	ctx, cancel := context.WithTimeout(t.Context(), goTimeout/100)
	defer cancel()
	start := time.Now()
	if addrs, err := r.LookupHost(ctx, "db.test."); err == nil || time.Since(start) > goTimeout {
		t.Errorf("got %v, %v after %s", addrs, err, time.Since(start))
	}
}

// TestResolver_FindsTheServers is not parallel, because it replaces the package's resolver.
//
//nolint:paralleltest // see above
func TestResolver_FindsTheServers(t *testing.T) {
	before := resolver
	t.Cleanup(func() { resolver = before })
	resolver = newResolver(answerTimeout, (&nameServer{}).start(t))
	resolver.PreferGo = true
	const closedPort = "postgres://u@db.test.:1/x"
	db, err := Open(t.Context(), Config{URL: closedPort}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	_, migrations := openMigrationDriver(t.Context(), closedPort, "s")
	for name, err := range map[string]error{
		"ordinary": db.Ordinary.Ping(t.Context()), "urgent": db.Urgent.Ping(t.Context()), "migrations": migrations,
	} {
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: got %v, want a refused connection to the address", name, err)
		}
	}
}

// nameServer is a name server on a local port. It knows 127.0.0.1 for each name.
type nameServer struct {
	lost int  // the first queries, which it does not answer
	code byte // of all answers
}

// start serves until the test ends. It returns the way to the server.
func (s *nameServer) start(t *testing.T) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	server, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { _ = server.Close(); <-ended })
	go func() {
		defer close(ended)
		query := make([]byte, 1500)
		for {
			n, client, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			if s.lost--; s.lost < 0 {
				_, _ = server.WriteTo(s.answer(query[:n]), client)
			}
		}
	}()
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}
}

// answer writes a message of RFC 1035: the header, the question, and an address if the question
// asks for one of IPv4.
func (s *nameServer) answer(query []byte) []byte {
	const header, typeAndClass = 12, 4
	end := header + bytes.IndexByte(query[header:], 0) + 1 + typeAndClass
	wantsA := query[end-3] == 1
	answer := append([]byte{query[0], query[1], 0x81, 0x80 | s.code, 0, 1, 0, 0, 0, 0, 0, 0}, query[header:end]...)
	if wantsA && s.code == 0 {
		answer[7] = 1
		answer = append(answer, 0xc0, header, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
	}
	return answer
}
