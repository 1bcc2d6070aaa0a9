package resourcelocks

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// socket is a connection of a client of Locktopus.
type socket struct {
	*websocket.Conn
	messages chan message
	done     chan struct{} // closed by the test
	leave    func()

	mu     sync.Mutex
	ended  time.Time // when the connection ended, as its client knows it
	reason error
}

// message is a frame of the server.
type message struct{ ID, Action, State string }

const (
	// namespace is that of all tests, because each has a database of its own.
	namespace      = "faults"
	releaseMessage = `{"action": "release"}`
)

func socketURL(at addresses) string {
	return "ws" + strings.TrimPrefix(at["locktopus"], "http") + "/v1?namespace=" + namespace
}

// connectLocktopus opens a connection.
func connectLocktopus(ctx context.Context, at addresses) (*socket, error) {
	conn, answer, err := websocket.DefaultDialer.DialContext(ctx, socketURL(at), nil)
	if answer != nil {
		_ = answer.Body.Close()
	}
	if err != nil {
		return nil, err
	}
	s := &socket{Conn: conn, messages: make(chan message), done: make(chan struct{})}
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.read()
	}()
	s.leave = sync.OnceFunc(func() {
		s.end(nil)
		close(s.done)
		_ = s.Close()
		<-read
	})
	return s, nil
}

// read passes messages on until the connection ends.
func (s *socket) read() {
	defer close(s.messages)
	for {
		_, frame, err := s.ReadMessage()
		var m message
		if err == nil {
			if err = json.Unmarshal(frame, &m); err != nil {
				err = fmt.Errorf("%q: %w", frame, err)
			}
		}
		if err != nil {
			s.end(err)
			return
		}
		select {
		case s.messages <- m:
		case <-s.done:
			return
		}
	}
}

// end notes the end of the connection. Only the first call counts.
func (s *socket) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended.IsZero() {
		s.ended, s.reason = time.Now(), err
	}
}

// ends is when a held claim is lost: zero while the connection lives.
func (s *socket) ends() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended.IsZero() {
		return time.Time{}
	}
	return s.ended.Add(abandonTimeout)
}

// send sends a message and returns the answer.
func (s *socket) send(ctx context.Context, text string) (message, error) {
	if err := s.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		return message{}, err
	}
	return s.receive(ctx)
}

func (s *socket) receive(ctx context.Context) (message, error) {
	select {
	case m, open := <-s.messages:
		if !open {
			s.mu.Lock()
			defer s.mu.Unlock()
			return message{}, fmt.Errorf("the connection ended: %w", s.reason)
		}
		return m, nil
	case <-ctx.Done():
		return message{}, ctx.Err()
	}
}

func lockMessage(path string) string {
	return fmt.Sprintf(`{"action": "lock", "resources": [{"type": "write", "path": [%q]}]}`, path)
}

func tryLocktopus(ctx context.Context, at addresses, key, _ string) (*hold, error) {
	return acquireLocktopus(ctx, at, key, false)
}

func awaitLocktopus(ctx context.Context, at addresses, key, _ string) (*hold, error) {
	return acquireLocktopus(ctx, at, key, true)
}

// acquireLocktopus asks for a key on a connection of its own.
func acquireLocktopus(ctx context.Context, at addresses, key string, wait bool) (_ *hold, err error) {
	s, err := connectLocktopus(ctx, at)
	if err != nil {
		return nil, errAnswer(errAway, "%v", err)
	}
	defer func() {
		if err != nil {
			s.leave()
		}
	}()
	m, err := s.send(ctx, lockMessage(key))
	if err == nil && m.State == "enqueued" {
		if !wait {
			return nil, errRefused
		}
		m, err = s.receive(ctx)
	}
	if err != nil {
		return nil, errAnswer(errAway, "%v", err)
	}
	number, err := strconv.ParseInt(m.ID, 10, 64)
	if err != nil || m.Action != "lock" || m.State != "acquired" {
		return nil, fmt.Errorf("locktopus answers %+v", m)
	}
	return &hold{fence: number, ends: s.ends, leave: s.leave, release: func(ctx context.Context) error {
		defer s.leave()
		m, err := s.send(ctx, releaseMessage)
		if err == nil && m.State != "ready" {
			err = fmt.Errorf("locktopus answers %+v to a release", m)
		}
		return err
	}}, nil
}
