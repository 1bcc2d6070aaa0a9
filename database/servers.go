package database

import (
	"context"
	"net"
	"slices"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// servers chooses with which host of the URL new connections begin: the one that the last
// connection led to, because each silent host before it costs connectTimeout. It is safe for
// concurrent use.
type servers struct {
	mu        sync.Mutex
	addresses map[string][]string // of each host, by the last lookup
	last      string              // host and port that a connection led to last; "" is not known
	left      bool                // new connections begin with the host after it
}

// lookUp is a LookupFunc that keeps what the next one finds.
func (s *servers) lookUp(next pgconn.LookupFunc) pgconn.LookupFunc {
	return func(ctx context.Context, host string) ([]string, error) {
		found, err := next(ctx, host)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.addresses == nil {
			s.addresses = map[string][]string{}
		}
		s.addresses[host] = found
		return found, err
	}
}

// order puts the host to begin with first. The others keep their order.
func (s *servers) order(cc *pgx.ConnConfig) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := append([]*pgconn.FallbackConfig{{Host: cc.Host, Port: cc.Port, TLSConfig: cc.TLSConfig}}, cc.Fallbacks...)
	isLast := func(f *pgconn.FallbackConfig) bool { return hostPort(f.Host, f.Port) == s.last }
	first := slices.IndexFunc(list, isLast)
	if first < 0 {
		return
	}
	for s.left && first < len(list) && isLast(list[first]) { // sslmode=prefer names each host twice
		first++
	}
	list = slices.Concat(list[first:], list[:first])
	cc.Host, cc.Port, cc.TLSConfig, cc.Fallbacks = list[0].Host, list[0].Port, list[0].TLSConfig, list[1:]
}

// servedBy is where a connection keeps the host that it leads to.
const servedBy = "served by"

// noteConnected remembers the host that a new connection leads to.
func (s *servers) noteConnected(conn *pgx.Conn) {
	cc := conn.Config()
	address, port, _ := net.SplitHostPort(conn.PgConn().Conn().RemoteAddr().String()) // a socket has neither
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.left = "", false
	for _, host := range append([]*pgconn.FallbackConfig{{Host: cc.Host, Port: cc.Port}}, cc.Fallbacks...) {
		if strconv.Itoa(int(host.Port)) == port && slices.Contains(s.addresses[host.Host], address) {
			s.last = hostPort(host.Host, host.Port)
			break
		}
	}
	conn.PgConn().CustomData()[servedBy] = s.last
}

// leave lets new connections begin with another host than this one. It reports whether they would
// have begun with it, or might have.
func (s *servers) leave(host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = s.left || host == s.last
	return host == s.last
}

// leaveLast is leave for the host that a connection led to last.
func (s *servers) leaveLast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = true
}
