package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// machine is a self-check machine that speaks SIP2. It sends one message after the other.
type machine struct {
	login    string // the message that signs it in
	mu       sync.Mutex
	conn     net.Conn
	in       *bufio.Reader
	refused  int // logins that were answered with 940
	hungUp   int // connections that ended before the login was answered in time
	signedIn time.Duration
}

const (
	// loginPatience is how long a machine waits for the answer to its login.
	loginPatience = 5 * time.Second
	// loginPause is how long it waits after a login that failed.
	loginPause = time.Second
	// messagePatience is longer than any answer.
	messagePatience = 15 * time.Second
)

func newMachine(number int) *machine {
	login := fmt.Sprintf("machine-%d", number)
	return &machine{login: "9300CN" + login + "@" + tenant + "|CO" + login + "-password|"}
}

// connect connects and signs in. It tries again until it succeeds.
func (m *machine) connect(ctx context.Context, addr string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused, m.hungUp = 0, 0
	for began := time.Now(); ctx.Err() == nil; {
		answer, err := m.tryLogin(ctx, addr)
		if answer == "941" {
			m.signedIn = time.Since(began)
			return nil
		}
		if err != nil {
			m.hungUp++
		} else {
			m.refused++
		}
		<-time.After(loginPause)
	}
	return ctx.Err()
}

func (m *machine) tryLogin(ctx context.Context, addr string) (string, error) {
	m.hangUp()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	m.conn, m.in = conn, bufio.NewReaderSize(conn, 512)
	return m.exchange(m.login, loginPatience)
}

func (m *machine) hangUp() {
	if m.conn != nil {
		_ = m.conn.Close() // nothing is lost
	}
}

// ask returns the answer to a message.
func (m *machine) ask(line string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.exchange(line, messagePatience)
}

func (m *machine) exchange(line string, patience time.Duration) (string, error) {
	if err := m.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(m.conn, line+"\r"); err != nil {
		return "", err
	}
	answer, err := m.in.ReadString('\r')
	return strings.TrimSuffix(answer, "\r"), err
}

// connectAll lets all machines sign in at once. It returns what the last one needed, and how many
// logins were refused or not answered in time.
func connectAll(ctx context.Context, machines []*machine, addr string) (took time.Duration, refused, hungUp int, err error) {
	errs := make([]error, len(machines))
	var wg sync.WaitGroup
	for i, m := range machines {
		wg.Go(func() { errs[i] = m.connect(ctx, addr) })
	}
	wg.Wait()
	for _, m := range machines {
		took, refused, hungUp = max(took, m.signedIn), refused+m.refused, hungUp+m.hungUp
	}
	return took, refused, hungUp, errors.Join(errs...)
}
