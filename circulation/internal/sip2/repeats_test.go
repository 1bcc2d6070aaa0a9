package sip2_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/sip2"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas"
)

// counting answers with a number that counts its calls, and with result.
func counting(calls *atomic.Int64, result wire.Result) handler {
	return func(_ context.Context, _ library.Terminal, r wire.Request) wire.Answer {
		a := wire.NewAnswer("24", strings.Repeat("x", int(calls.Add(1))))
		a.Result = result
		return a
	}
}

func TestRepeat_OnTheSameConnection(t *testing.T) {
	t.Parallel()
	const request = "23001" + date + "AOmain|AAP-1|"
	for _, c := range []struct {
		name          string
		result        wire.Result
		between, next string
		calls         int64
	}{
		{name: "gets the answer of the first", result: wire.OK, between: "", next: request, calls: 1},
		{name: "gets the refusal of the first", result: wire.Refused, between: "", next: request, calls: 1},
		{name: "is tried again after a busy lock", result: wire.Busy, between: "", next: request, calls: 2},
		{name: "is tried again after a failure", result: wire.Failed, between: "", next: request, calls: 2},
		{name: "is tried again after an unknown outcome", result: wire.Unknown, between: "", next: request, calls: 2},
		{
			name: "is another message with another date", result: wire.OK, between: "",
			next: strings.Replace(request, "2026", "2027", 1), calls: 2,
		},
		{
			name: "is another message with another sequence number", result: wire.OK, between: "", next: request + "AY1",
			calls: 2,
		},
		{name: "counts after a garbled line", result: wire.OK, between: "garbage", next: request, calls: 1},
		{name: "counts after a 97", result: wire.OK, between: "97", next: request, calls: 1},
		{name: "does not count after another message", result: wire.OK, between: "9900402.00", next: request, calls: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			m := start(t, func(s *setup) { s.handlers[wire.PatronStatus] = counting(&calls, c.result) }).signedIn()
			first := m.ask(request)
			if c.between != "" {
				m.ask(c.between)
			}
			repeat := m.ask(c.next)
			if calls.Load() != c.calls || (repeat == first) != (c.calls == 1) {
				t.Errorf("%d calls, answers %q and %q", calls.Load(), first, repeat)
			}
		})
	}
}

func TestRepeat_OnTheSameConnection_CountsForAMinute(t *testing.T) {
	t.Parallel()
	r, err := wire.Parse([]byte(checkOut), wire.CP850, wire.DetectErrors)
	if err != nil {
		t.Fatal(err)
	}
	a := wire.Refusal(r, "", time.Now(), "no")
	if !sip2.Keeps(r, a, 59*time.Second) || sip2.Keeps(r, a, time.Minute) {
		t.Error("a refusal is not kept for a minute")
	}
}

func TestRepeat_OfALoanIsLookedAtAnew(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	var ended atomic.Bool
	h := start(t, func(s *setup) {
		s.handlers[wire.CheckOut] = func(_ context.Context, _ library.Terminal, r wire.Request) wire.Answer {
			calls.Add(1)
			if ended.Load() {
				return wire.Refusal(r, "", time.Now(), "on loan")
			}
			a := wire.NewAnswer("12", "1NUY", time.Now().Format("150405.000000000"))
			a.Add("AA", r.Field("AA"))
			return a
		}
	})
	m := h.signedIn()
	first := m.ask(checkOut)
	m.expect(checkOut, first)
	waitFor(t, "one check-out and a repeat", h.reports.is("desk-1", func(s schemas.TerminalState) bool {
		return len(s.Counts) > 0 && s.Counts[0] == schemas.TerminalCounts{CheckOuts: 1, Repeated: 1}
	}))
	ended.Store(true)
	if again := m.ask(checkOut); !strings.HasPrefix(again, "120") || calls.Load() != 3 {
		t.Errorf("got %q after %d calls", again, calls.Load())
	}
}

// blocking answers once finish is closed, and reports whether its context ended meanwhile.
func blocking(calls *atomic.Int64, begun chan<- struct{}, finish <-chan struct{}, cancelled *atomic.Bool) handler {
	return func(ctx context.Context, terminal library.Terminal, r wire.Request) wire.Answer {
		calls.Add(1)
		begun <- struct{}{}
		<-finish
		cancelled.Store(ctx.Err() != nil)
		return lend(ctx, terminal, r)
	}
}

func TestRepeat_OnANewConnection_WaitsForTheFirst(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	var cancelled atomic.Bool
	begun, finish := make(chan struct{}, 9), make(chan struct{})
	h := start(t, func(s *setup) { s.handlers[wire.CheckOut] = blocking(&calls, begun, finish, &cancelled) })
	first, second, stranger := h.signedIn(), h.signedIn(), h.connect()
	stranger.expect("9300CNdesk-2|COdesk-2-password|", "941")
	first.send(checkOut + "\r")
	<-begun
	first.conn.Close()
	second.send(checkOut + "AY7\r")
	stranger.send(checkOut + "\r") // the same bytes of another terminal are another message
	<-begun
	waitFor(t, "the repeat", func() bool { return h.count("circulation_sip2_repeats_total") == 1 })
	close(finish)
	if got := second.read(); got != "121NUY"+date+"AOmain|AAP-1002|" {
		t.Errorf("got %q", got)
	}
	stranger.read()
	if calls.Load() != 2 || cancelled.Load() {
		t.Errorf("%d calls, cancelled %t; want 2 calls, none cancelled", calls.Load(), cancelled.Load())
	}
	waitFor(t, "one check-out and a repeat", h.reports.is("desk-1", func(s schemas.TerminalState) bool {
		return len(s.Counts) > 0 && s.Counts[0] == schemas.TerminalCounts{CheckOuts: 1, Repeated: 1}
	}))
}

func TestRepeat_ThatTheHandlerKnows_IsNoOtherCheckOut(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	h := start(t, func(s *setup) {
		s.handlers[wire.CheckOut] = func(ctx context.Context, terminal library.Terminal, r wire.Request) wire.Answer {
			a := lend(ctx, terminal, r)
			a.Repeated = calls.Add(1) > 1
			return a
		}
	})
	h.signedIn().ask(checkOut)
	second := h.signedIn()
	second.ask(checkOut)
	second.ask(checkOut)
	waitFor(t, "one check-out and two repeats", h.reports.is("desk-1", func(s schemas.TerminalState) bool {
		return len(s.Counts) > 0 && s.Counts[0] == schemas.TerminalCounts{CheckOuts: 1, Repeated: 2}
	}))
	if n := h.count("circulation_sip2_repeats_total"); n != 2 {
		t.Errorf("counted %v repeats, want 2", n)
	}
}

func TestRepeat_OnTheSameConnectionWhileTheFirstRuns_GetsOneAnswer(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	var cancelled atomic.Bool
	begun, finish := make(chan struct{}, 9), make(chan struct{})
	h := start(t, func(s *setup) {
		s.limits.Resend = 0
		s.handlers[wire.CheckOut] = blocking(&calls, begun, finish, &cancelled)
	})
	m := h.signedIn()
	m.send(checkOut + "\r\n")
	<-begun
	m.send(checkOut + "\r\n" + checkOut + "\r\n" + status + "\r\n")
	close(finish)
	if got := m.read(); !strings.HasPrefix(got, "121") {
		t.Errorf("got %q", got)
	}
	if got := m.read(); !strings.HasPrefix(got, "98") || calls.Load() != 1 {
		t.Errorf("got %q after %d calls, want 98 after one", got, calls.Load())
	}
}

func TestRepeat_DoesNotOutwaitTheMachine(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	var cancelled atomic.Bool
	begun, finish := make(chan struct{}, 9), make(chan struct{})
	h := start(t, func(s *setup) {
		s.terminals[0]["patienceMs"] = 1000
		s.handlers[wire.CheckOut] = blocking(&calls, begun, finish, &cancelled)
	})
	first, second := h.signedIn(), h.signedIn()
	first.send(checkOut + "\r")
	<-begun
	second.expect(checkOut, "120NUN"+date+"AOmain|AAP-1002|ABD-2003|AJ|AH|AFmachine.tryAgain|")
	close(finish)
	first.read()
}

// A commit whose answer is lost takes longer than a machine waits.
func TestMessage_IsAnsweredInTime_AndItsRepeatLearnsTheEnd(t *testing.T) {
	t.Parallel()
	const checkIn = "09N" + date + date + "AP|AOmain|ABD-2003|AC|"
	var calls atomic.Int64
	var cancelled atomic.Bool
	begun, finish := make(chan struct{}, 9), make(chan struct{})
	h := start(t, func(s *setup) {
		s.terminals[0]["patienceMs"] = 1000
		s.handlers[wire.CheckIn] = blocking(&calls, begun, finish, &cancelled)
	})
	m := h.signedIn()
	m.expect(checkIn, "100NUY"+date+"AOmain|ABD-2003|AQ|CV99|AFmachine.tryAgain|")
	m.send(checkIn + "\r")
	waitFor(t, "the repeat", func() bool { return h.count("circulation_sip2_repeats_total") == 1 })
	close(finish)
	if got := m.read(); !strings.HasPrefix(got, "121") || calls.Load() != 1 {
		t.Errorf("got %q after %d calls", got, calls.Load())
	}
}
