package database

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// groupTimeout bounds the work of a group once it has a connection.
const groupTimeout = 5 * time.Second

// A group waits briefly for a row, because all its members wait: shorter than any deadlock_timeout in
// use.
const (
	GroupLockTimeout = 50 * time.Millisecond
	// SetGroupLockTimeout sets it within a statement.
	SetGroupLockTimeout = `set_config('lock_timeout', '50ms', true)`
)

// Groups sends calls in groups, one group of a key at a time. Calls that arrive while a
// group is under way form the next one, which its first member sends. So one transaction
// serves all of them, and a call without company waits for no other.
//
//   - A member whose context ends before its group begins leaves, and the next one sends
//     the group. What it does after that is a setting, see LeaveEarly.
//   - Members are answered after Send has returned.
//   - If the transaction did not happen, each member gets ErrRunAlone. If nothing is known
//     of it, each gets the error, because a second run could change something twice. Each
//     gets the error also if a second run would be refused, see Lack.
type Groups[K comparable, Q, A any] struct {
	Pool *pgxpool.Pool
	// Send answers all members, or returns an error. A group has at least one. Its context
	// has the values of the first one's, and a time-out of its own.
	Send func(ctx context.Context, conn *pgxpool.Conn, group []*Member[Q, A]) error
	// LeaveEarly lets a member leave a group that is under way, when its context ends. What
	// it asked for may happen nevertheless. Otherwise it waits for its answer, so that it
	// can undo what it got. The member that sends the group always waits.
	LeaveEarly bool

	mu sync.Mutex
	// waiting are the calls of the next group. A key is in it only while a group of it is
	// under way.
	waiting map[K][]*Member[Q, A]
}

// Member is one call of a group, and its answer.
type Member[Q, A any] struct {
	Asked  Q
	Answer A
	// Err is ErrNoAnswer until Send sets another one, or nil.
	Err   error
	leads chan bool // true to send the next group, false when answered
}

// ErrRunAlone is the answer of a group that did nothing for the member. The member runs
// the statement for a single call.
var ErrRunAlone = errors.New("run the statement for a single call")

// ErrNoAnswer is a member that Send left out.
var ErrNoAnswer = errors.New("the group ended without an answer")

// NewMember returns a member without an answer.
func NewMember[Q, A any](asked Q) *Member[Q, A] {
	return &Member[Q, A]{Asked: asked, Err: ErrNoAnswer, leads: make(chan bool, 1)}
}

// Run returns the answer to one call.
func (g *Groups[K, Q, A]) Run(ctx context.Context, key K, asked Q) (answer A, err error) {
	m := NewMember[Q, A](asked)
	leads := g.enter(key, m)
	if !leads {
		leads, err = g.await(ctx, key, m)
	}
	switch {
	case err != nil:
		return answer, err
	case leads:
		return g.lead(ctx, key, m)
	}
	return m.Answer, m.Err
}

// enter reports whether m leads, because no group of the key is under way. Else m waits.
func (g *Groups[K, Q, A]) enter(key K, m *Member[Q, A]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting == nil {
		g.waiting = map[K][]*Member[Q, A]{}
	}
	waiting, underWay := g.waiting[key]
	if underWay {
		g.waiting[key] = append(waiting, m)
		return false
	}
	g.waiting[key] = nil
	return true
}

// await waits until m leads or is answered. It returns an error if m leaves before.
func (g *Groups[K, Q, A]) await(ctx context.Context, key K, m *Member[Q, A]) (leads bool, err error) {
	select {
	case leads = <-m.leads:
		return leads, nil
	case <-ctx.Done():
	}
	if g.leave(key, m) {
		return false, fmt.Errorf("waiting for a group: %w", ctx.Err())
	}
	if !g.LeaveEarly {
		return <-m.leads, nil
	}
	select {
	case leads = <-m.leads: // a leader must not leave the others behind
		return leads, nil
	default:
		return false, fmt.Errorf("waiting for the answer of a group: %w", ctx.Err())
	}
}

// leave reports whether m was still waiting. Else it leads, or its group is under way.
func (g *Groups[K, Q, A]) leave(key K, m *Member[Q, A]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	waiting := g.waiting[key]
	i := slices.Index(waiting, m)
	if i < 0 {
		return false
	}
	g.waiting[key] = slices.Delete(waiting, i, i+1)
	return true
}

// lead sends a group of m and all that wait, and returns the answer to m.
func (g *Groups[K, Q, A]) lead(ctx context.Context, key K, m *Member[Q, A]) (answer A, err error) {
	conn, err := g.Pool.Acquire(ctx)
	if err != nil {
		var others []*Member[Q, A]
		if ctx.Err() == nil { // the others would fail one after the other
			others = g.takeWaiting(key)
			AnswerAll(others, ErrRunAlone)
		}
		g.endGroup(key, others)
		return answer, fmt.Errorf("getting a connection: %w", err)
	}
	group := append([]*Member[Q, A]{m}, g.takeWaiting(key)...)
	g.send(ctx, key, conn, group)
	return m.Answer, m.Err
}

// send sends a group and answers it.
func (g *Groups[K, Q, A]) send(ctx context.Context, key K, conn *pgxpool.Conn, group []*Member[Q, A]) {
	defer g.endGroup(key, group) // also after a panic, which must not block the key
	defer conn.Release()
	// The end of the leader's call must not lose the answers.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), groupTimeout)
	defer cancel()
	err := g.Send(ctx, conn, group)
	switch {
	case err == nil:
	case changedNothing(err) && Lack(err) == "":
		AnswerAll(group, ErrRunAlone)
	default:
		AnswerAll(group, err)
	}
}

func (g *Groups[K, Q, A]) takeWaiting(key K) []*Member[Q, A] {
	g.mu.Lock()
	defer g.mu.Unlock()
	waiting := g.waiting[key]
	g.waiting[key] = nil
	return waiting
}

// endGroup lets the first that waits lead the next group, and answers the members of this
// one. It forgets a key for which no call waits.
func (g *Groups[K, Q, A]) endGroup(key K, group []*Member[Q, A]) {
	g.passLead(key)
	for _, m := range group {
		m.leads <- false
	}
}

func (g *Groups[K, Q, A]) passLead(key K) {
	g.mu.Lock()
	defer g.mu.Unlock()
	waiting := g.waiting[key]
	if len(waiting) == 0 {
		delete(g.waiting, key)
		return
	}
	g.waiting[key] = waiting[1:]
	waiting[0].leads <- true
}

// AnswerAll gives all members the same error.
func AnswerAll[Q, A any](group []*Member[Q, A], err error) {
	for _, m := range group {
		m.Err = err
	}
}

// Waiting returns how many calls wait for the next group of a key, -1 while none is under
// way. It is for statistics and tests.
func (g *Groups[K, Q, A]) Waiting(key K) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if waiting, underWay := g.waiting[key]; underWay {
		return len(waiting)
	}
	return -1
}

// Keys returns how many keys have a group under way.
func (g *Groups[K, Q, A]) Keys() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

// changedNothing reports whether a statement that failed with err was rolled back. After the loss of
// a session that is not known, also if pgx calls it safe to retry: "conn closed" may hide a lost answer.
func changedNothing(err error) bool {
	code, _ := SQLState(err)
	return code != "" && !ConnectionLost(err) && !errors.Is(err, ErrUnconfirmed)
}
