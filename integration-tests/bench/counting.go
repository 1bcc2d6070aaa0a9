package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
)

// callCounter is a reverse proxy in front of a storage that counts calls.
type callCounter struct {
	listener net.Listener
	server   *http.Server
	calls    atomic.Int64
}

func newCallCounter(storageURL string) (*callCounter, error) {
	target, err := url.Parse(storageURL)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it listens at once
	if err != nil {
		return nil, err
	}
	c := &callCounter{listener: listener}
	proxy := httputil.NewSingleHostReverseProxy(target)
	c.server = &http.Server{ //nolint:gosec // it serves the benchmark's own client only
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c.calls.Add(1)
			proxy.ServeHTTP(w, r)
		}),
	}
	go func() { _ = c.server.Serve(listener) }() // it ends by close
	return c, nil
}

func (c *callCounter) url() string { return "http://" + c.listener.Addr().String() }

func (c *callCounter) close() error { return c.server.Close() }

// wireCounter is a TCP proxy in front of PostgreSQL that counts what the client sends:
// statements (Execute and Query messages), round trips (Sync and Query messages) and
// commits. A commit is durable, because statements that are not send none.
type wireCounter struct {
	listener                        net.Listener
	server                          string
	statements, roundTrips, commits atomic.Int64
}

func newWireCounter(databaseURL string) (*wireCounter, string, error) {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return nil, "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it listens at once
	if err != nil {
		return nil, "", err
	}
	w := &wireCounter{listener: listener, server: u.Host}
	go w.accept()
	u.Host = listener.Addr().String()
	return w, u.String(), nil
}

func (w *wireCounter) close() error { return w.listener.Close() }

func (w *wireCounter) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return // closed
		}
		server, err := net.Dial("tcp", w.server) //nolint:noctx // the proxy ends with the benchmark
		if err != nil {
			_ = client.Close()
			continue
		}
		go func() {
			_, _ = io.Copy(client, server)
			_ = client.Close()
		}()
		go func() {
			_ = w.count(server, client)
			_ = server.Close()
		}()
	}
}

// count passes the client's messages on. The first one has no type byte.
func (w *wireCounter) count(server io.Writer, client io.Reader) error {
	var header [5]byte
	commits := map[string]bool{} // the names of prepared statements that commit
	for first := true; ; first = false {
		head := header[:]
		if first {
			head = header[1:]
		}
		if _, err := io.ReadFull(client, head); err != nil {
			return err
		}
		body := make([]byte, binary.BigEndian.Uint32(header[1:])-4)
		if _, err := io.ReadFull(client, body); err != nil {
			return err
		}
		if !first {
			w.countMessage(header[0], body, commits)
		}
		if _, err := server.Write(bytes.Join([][]byte{head, body}, nil)); err != nil {
			return err
		}
	}
}

func (w *wireCounter) countMessage(kind byte, body []byte, commits map[string]bool) {
	texts := strings.SplitN(string(body), "\x00", 3)
	switch kind {
	case 'Q':
		if isCommit(texts[0]) {
			w.commits.Add(1)
		}
		w.statements.Add(1)
		w.roundTrips.Add(1)
	case 'P': // a statement's name and text
		commits[texts[0]] = isCommit(texts[1])
	case 'B': // a portal's and a statement's name
		if commits[texts[1]] {
			w.commits.Add(1)
		}
	case 'E':
		w.statements.Add(1)
	case 'S':
		w.roundTrips.Add(1)
	}
}

func isCommit(statement string) bool { return strings.EqualFold(statement, "commit") }
