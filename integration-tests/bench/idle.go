package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"checkoutlock/integration-tests/mutualtls"
)

const (
	idleConnections = 1000 // of each kind
	// idleFor is how long they idle before the memory is read.
	idleFor = 2 * time.Second
)

// idleKind is a kind of connections.
type idleKind struct {
	name string
	dial func(s *lockService, i int) (io.Closer, error) // nil opens none
}

func listIdleKinds(ctx context.Context, certs *mutualtls.Files) []idleKind {
	return []idleKind{
		{name: "none"},
		{name: "%d of HTTP, kept alive", dial: func(s *lockService, _ int) (io.Closer, error) { return openKeptAlive(ctx, s.mutex) }},
		{name: "and %d web sockets", dial: func(s *lockService, _ int) (io.Closer, error) {
			c, err := dialLocktopus(ctx, s.locktopus, "idle")
			if err != nil {
				return nil, err
			}
			return c.ws, nil
		}},
		{name: "and %d of gRPC with mutual TLS, after a lock each", dial: func(s *lockService, i int) (io.Closer, error) {
			c, err := dialLocket(s.locket, certs.Client)
			if err != nil {
				return nil, err
			}
			name := "idle-" + strconv.Itoa(i)
			return c.conn, mustHold(c.lock(ctx, name, name, locketTTL))
		}},
	}
}

// measureIdle opens idle connections of each kind and reads the memory of the service, and
// of the libraries alone.
func measureIdle(ctx context.Context, b *bench) (err error) {
	certs, err := mutualtls.WriteFiles(b.dir)
	if err != nil {
		return err
	}
	service, err := startResourceLocks(ctx, b, b.builds[0], certs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, service.stop()) }()
	libraries, err := startFronts(ctx, "libraries alone", certs, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, libraries.stop()) }()
	var open []io.Closer
	defer func() {
		for _, c := range open {
			_ = c.Close() // nothing is under way
		}
	}()
	b.report.note("*Libraries alone* is a process of net/http, gorilla/websocket and gRPC with the same TLS and buffers, which answers and does nothing else.")
	rows := [][]string{{"connections", "memory of resource-locks", "libraries alone"}}
	for _, kind := range listIdleKinds(ctx, certs) {
		row := []string{strings.ReplaceAll(kind.name, "%d", strconv.Itoa(idleConnections))}
		for _, s := range []*lockService{service, libraries} {
			more, err := openAll(s, kind)
			open = append(open, more...)
			if err != nil {
				return err
			}
			<-time.After(idleFor)
			memory, err := s.memory()
			if err != nil {
				return err
			}
			row = append(row, memory.String())
		}
		rows = append(rows, row)
	}
	b.report.table(rows)
	return nil
}

// openAll opens idleConnections connections of a kind and returns those that are open.
func openAll(s *lockService, kind idleKind) ([]io.Closer, error) {
	if kind.dial == nil {
		return nil, nil
	}
	all := make([]io.Closer, idleConnections)
	err := inParallel(len(all), func(i int) error {
		c, err := kind.dial(s, i)
		if err == nil {
			all[i] = c
		}
		return err
	})
	return slices.DeleteFunc(all, func(c io.Closer) bool { return c == nil }), err
}

// openKeptAlive sends a request on a new connection, which stays open.
func openKeptAlive(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if err := getOn(ctx, conn, "http://"+addr+"/api/lock/idle/"); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func getOn(ctx context.Context, conn net.Conn, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("X-User-Id", "bench")
	if err := req.Write(conn); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound || resp.Close {
		return fmt.Errorf("GET %s: answered %d, want 404 and a kept connection", url, resp.StatusCode)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
