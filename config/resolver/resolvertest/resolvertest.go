// Package resolvertest has a name server for tests.
package resolvertest

import (
	"bytes"
	"context"
	"net"
	"testing"

	"checkoutlock/config/resolver"
)

// Server is a name server on a local port. It knows 127.0.0.1 for each name.
type Server struct {
	Lost int  // the first queries, which it does not answer
	Code byte // of all answers
}

// ReplaceDefault lets resolver.Default ask the server until the test ends. So the test must not
// be parallel.
func (s *Server) ReplaceDefault(t *testing.T) {
	t.Helper()
	before := resolver.Default
	t.Cleanup(func() { resolver.Default = before })
	resolver.Default = resolver.New(resolver.AnswerTimeout, s.Start(t))
	resolver.Default.PreferGo = true
}

// Start serves until the test ends. It returns the way to the server.
func (s *Server) Start(t *testing.T) func(context.Context, string, string) (net.Conn, error) {
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
			if s.Lost--; s.Lost < 0 {
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
func (s *Server) answer(query []byte) []byte {
	const header, typeAndClass = 12, 4
	end := header + bytes.IndexByte(query[header:], 0) + 1 + typeAndClass
	wantsA := query[end-3] == 1
	answer := append([]byte{query[0], query[1], 0x81, 0x80 | s.Code, 0, 1, 0, 0, 0, 0, 0, 0}, query[header:end]...)
	if wantsA && s.Code == 0 {
		answer[7] = 1
		answer = append(answer, 0xc0, header, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
	}
	return answer
}
