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

// measureIdle opens idle connections of each kind and reads the memory of the service.
func measureIdle(ctx context.Context, b *bench) (err error) {
	certs, err := mutualtls.WriteFiles(b.dir)
	if err != nil {
		return err
	}
	s, err := startResourceLocks(ctx, b, b.builds[0], certs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	var open []io.Closer
	defer func() {
		for _, c := range open {
			_ = c.Close() // nothing is under way
		}
	}()
	rows := [][]string{{"connections", "memory of resource-locks"}}
	for _, kind := range []struct {
		name string
		dial func() ([]io.Closer, error)
	}{
		{name: "none", dial: func() ([]io.Closer, error) { return nil, nil }},
		{name: "%d of HTTP, kept alive", dial: func() ([]io.Closer, error) {
			return openAll(func(int) (io.Closer, error) { return openKeptAlive(ctx, s.mutex) })
		}},
		{name: "and %d web sockets", dial: func() ([]io.Closer, error) {
			return openAll(func(int) (io.Closer, error) {
				c, err := dialLocktopus(ctx, s.locktopus, "idle")
				if err != nil {
					return nil, err
				}
				return c.ws, nil
			})
		}},
		{name: "and %d of gRPC with mutual TLS, after a lock each", dial: func() ([]io.Closer, error) {
			return openAll(func(i int) (io.Closer, error) {
				c, err := dialLocket(s.locket, certs.Client)
				if err != nil {
					return nil, err
				}
				name := "idle-" + strconv.Itoa(i)
				return c.conn, mustHold(c.lock(ctx, name, name, locketTTL))
			})
		}},
	} {
		more, err := kind.dial()
		open = append(open, more...)
		if err != nil {
			return err
		}
		<-time.After(idleFor)
		memory, err := s.memory()
		if err != nil {
			return err
		}
		rows = append(rows, []string{strings.ReplaceAll(kind.name, "%d", strconv.Itoa(idleConnections)), formatMegabytes(memory)})
	}
	b.report.table(rows)
	return nil
}

// openAll opens idleConnections connections and returns those that are open.
func openAll(dial func(i int) (io.Closer, error)) ([]io.Closer, error) {
	all := make([]io.Closer, idleConnections)
	err := inParallel(len(all), func(i int) error {
		c, err := dial(i)
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
