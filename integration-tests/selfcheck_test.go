package integration_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"checkoutlock/integration-tests/stack"
)

// selfCheckEnv returns circulation's settings with a listener for self-check machines.
func selfCheckEnv(more ...string) []string {
	return enableLock(append([]string{"SIP2_ADDR=127.0.0.1:0"}, more...)...)
}

// machine is a self-check machine that has signed in.
type machine struct {
	conn    net.Conn
	answers *bufio.Reader
}

// addTerminal registers a terminal, so that a machine can sign in. Its patience suits a busy host.
func (p *pair) addTerminal(t *testing.T, login string) {
	t.Helper()
	p.addRecord(t, "/self-check-terminals", record{
		"login": login, "name": "Hall", "password": login + "-password", "servicePointId": p.ServicePointID,
		"institution": "main", "characterSet": "utf-8", "patienceMs": 30_000,
	})
}

// connectMachine connects and signs in.
func (p *pair) connectMachine(t *testing.T, addr, login string) *machine {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	m := &machine{conn: conn, answers: bufio.NewReader(conn)}
	if got := m.ask(t, fmt.Sprintf("9300CN%s@%s|CO%s-password|", login, p.Storage.Tenant, login)); got != "941" {
		t.Fatalf("%s is not signed in: %s", login, got)
	}
	return m
}

// ask sends a message and returns the answer.
func (m *machine) ask(t *testing.T, message string) string {
	t.Helper()
	answer, err := m.tryAsk(message)
	if err != nil {
		t.Errorf("%s: %v", message, err)
	}
	return answer
}

// tryAsk is ask that returns what failed.
func (m *machine) tryAsk(message string) (string, error) {
	if err := m.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if _, err := m.conn.Write([]byte(message + "\r")); err != nil {
		return "", err
	}
	answer, err := m.answers.ReadString('\r')
	return strings.TrimSuffix(answer, "\r"), err
}

// newMessage returns the message of a check-out.
func newMessage(patron, book string) string {
	return "11NN20260105    101500                  AOmain|AA" + patron + "|AB" + book + "|AC|"
}

func TestSelfCheck_HoldsTheLimit(t *testing.T) {
	t.Parallel()
	const machines, limit = 20, 3
	p := startPair(t, stack.Options{Circulations: 2, CirculationEnv: selfCheckEnv()}, limit)
	p.addTerminal(t, "desk-1")
	id, patron := p.addPatron(t)
	books := p.addBooks(t, machines)
	answers := make([]string, machines)
	var running sync.WaitGroup
	start := make(chan struct{})
	for i := range machines {
		m := p.connectMachine(t, p.Machines[i%2], "desk-1")
		running.Go(func() {
			<-start
			answers[i] = m.ask(t, newMessage(patron, books[i]))
		})
	}
	close(start)
	running.Wait()
	lent := 0
	for _, answer := range answers {
		switch {
		case strings.HasPrefix(answer, "121NUY"):
			lent++
		case !strings.HasPrefix(answer, "120NUN") ||
			!strings.Contains(answer, "|AFYou have reached the limit of 3 items of this kind.|"):
			t.Errorf("got %s", answer)
		}
	}
	if open := p.countOpenLoans(t, id); lent != limit || open != limit {
		t.Errorf("%d machines lent, and %d loans are open, want %d", lent, open, limit)
	}
	p.checkNoLocks(t)
}
