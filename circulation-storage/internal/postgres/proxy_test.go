package postgres_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"checkoutlock/devpostgres"
)

// proxy passes connections to PostgreSQL on an address of its own. While it is shut, the
// address refuses connections, like that of a server that does not run.
type proxy struct {
	url, address, target string

	mu      sync.Mutex
	ln      net.Listener
	passing bool
	conns   []net.Conn
	wg      sync.WaitGroup
}

// newProxy returns a proxy that is shut. It is shut when the test ends.
func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	port, err := devpostgres.FindFreePort(t.Context()) // clients get another one while the proxy is shut
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{target: u.Host, address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	u.Host = p.address
	p.url = u.String()
	t.Cleanup(func() { p.shut(t) })
	return p
}

// open lets connections through.
func (p *proxy) open(t *testing.T) {
	t.Helper()
	ln, err := net.Listen("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	p.ln = ln
	p.mu.Lock()
	p.passing = true
	p.mu.Unlock()
	p.wg.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.pass(client) })
		}
	})
}

func (p *proxy) pass(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	passing := p.passing
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
	if !passing { // it was shut meanwhile
		_ = client.Close()
		_ = server.Close()
	}
	p.wg.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	_, _ = io.Copy(client, server)
	_ = client.Close()
}

// shut ends all connections and refuses new ones.
func (p *proxy) shut(t *testing.T) {
	t.Helper()
	if p.ln == nil {
		return
	}
	_ = p.ln.Close()
	p.mu.Lock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.passing, p.conns = false, nil
	p.mu.Unlock()
	p.wg.Wait()
	p.ln = nil
}

// logLines is a log that sends each line of level INFO and above as text, except
// the one that each start writes.
type logLines chan string

// Enabled implements slog.Handler.
func (l logLines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle implements slog.Handler.
func (l logLines) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "PostgreSQL servers" {
		return nil
	}
	var line strings.Builder
	fmt.Fprint(&line, r.Level, " ", r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprint(&line, " ", a)
		return true
	})
	l <- line.String()
	return nil
}

// WithAttrs implements slog.Handler.
func (l logLines) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l logLines) WithGroup(string) slog.Handler { return l }
