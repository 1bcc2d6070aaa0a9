package sip2_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/circulation/internal/sip2"
	"checkoutlock/circulation/internal/sip2/wire"
)

func TestNew_WithoutAddressIsOff(t *testing.T) {
	t.Parallel()
	front, err := sip2.New(sip2.Options{})
	if err != nil || front.Listener != nil {
		t.Errorf("got %+v, %v", front, err)
	}
}

func TestStatus_SaysWhatIsServed(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) {
		limited := terminal("limited")
		limited["messages"] = []string{"23"}
		lends := terminal("lends")
		lends["noBlock"], lends["patienceMs"] = "lend", 60_000
		s.terminals = append(s.terminals, limited, lends)
	})
	m := h.connect()
	m.expect(status+"AY1AZFCA4", "98YNNNNN200003"+date+"2.00AO|BXNNNNYYYNNNNNNNNN|AN|AY1AZEF00")
	m.expect(signIn, "941")
	m.expect(status, "98YNYNNN200003"+date+"2.00AOmain|AMMain Library|BXYYNNYYYNNNNNNNNN|ANHall|")
	m.expect("9300CNlimited@diku|COlimited-password|", "941")
	m.expect(status, "98YNNNNN200003"+date+"2.00AOmain|AMMain Library|BXYNNNYYYNNNNNNNNN|ANHall|")
	m.expect("9300CNLENDS@diku|COlends-password|", "941")
	m.expect("9910E02.00|", "98YNYNNY600003"+date+"2.00AOmain|AMMain Library|BXYYNNYYYNNNNNNNNN|ANHall|")
}

func TestStatus_NotReady_IsOffline(t *testing.T) {
	t.Parallel()
	m := start(t, func(s *setup) { s.notReady = true }).signedIn()
	if got := m.ask(status); !strings.HasPrefix(got, "98N") {
		t.Errorf("got %q", got)
	}
}

func TestDispatch_RefusesInTheMessagesOwnWay(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) {
		s.terminals[1]["institutionCheck"] = "strict"
		s.terminals[1]["messages"] = []string{"11"}
		delete(s.handlers, wire.Hold)
	})
	m := h.connect()
	m.expect(checkOut, "120NUN"+date+"AOmain|AAP-1002|ABD-2003|AJ|AH|AFmachine.notSignedIn|")
	m.expect(signIn, "941")
	m.expect("15+"+date+"AOmain|AAP-1|ABD-1|", "160N"+date+"AOmain|AAP-1|ABD-1|AFmachine.notServed|")
	m.expect(strings.Replace(checkOut, "AOmain", "AOother", 1), "121NUY"+date+"AOmain|AAP-1002|")
	m.expect("9300CNdesk-2|COdesk-2-password|", "941")
	m.expect(strings.Replace(checkOut, "AOmain", "AOother", 1),
		"120NUN"+date+"AOmain|AAP-1002|ABD-2003|AJ|AH|AFmachine.otherLibrary|")
	m.expect(strings.Replace(checkOut, "AOmain|", "", 1), "121NUY"+date+"AOmain|AAP-1002|")
	m.expect("23001"+date+"AOmain|AAP-1|", "24YYYY          001"+date+"AOmain|AAP-1|AE|AFmachine.notServed|")
}

func TestConnection_UsesTheTerminalsCharactersAndLineEnd(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) {
		s.terminals[0]["characterSet"], s.terminals[0]["lineEnd"] = "utf-8", "crlf"
		s.terminals[1]["lineEnd"] = "lf"
	})
	m := h.signedIn()
	m.send(strings.Replace(checkOut, "P-1002", "Käse", 1) + "\r9300CNdesk-2|COdesk-2-password|\r" + checkOut + "\r")
	const lent = "121NUY" + date + "AOmain|AA"
	for _, want := range []string{"\n", lent + "Käse|\r\n", "941\n", lent + "P-1002|\n"} {
		if got, err := m.in.ReadString('\n'); got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

func TestConnection_PrintsTexts(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) {
		s.terminals[0]["printTexts"] = true
		delete(s.handlers, wire.Hold)
	})
	const hold, refused = "15+" + date + "AO|AAP-1|ABD-1|", "160N" + date + "AOmain|AAP-1|ABD-1|AFmachine.notServed|"
	m := h.signedIn()
	m.expect(hold, refused+"AGmachine.notServed|")
	m.ask("990 092.00")
	m.expect(hold, refused+"AGmachine.n|AGotServed|")
	m.expect("9300CNdesk-2|COdesk-2-password|", "941")
	m.expect(hold, refused)
}

func TestConnection_AnswersPipelinedMessagesInOrder(t *testing.T) {
	t.Parallel()
	m := start(t, func(*setup) {}).signedIn()
	one, two := strings.Replace(checkOut, "P-1002", "P-1", 1), strings.Replace(checkOut, "P-1002", "P-2", 1)
	m.send("\r\n" + one + "\r\n" + two + "\n" + one[:20])
	m.send(one[20:] + "\r")
	for _, patron := range []string{"P-1", "P-2", "P-1"} {
		if got, want := m.read(), "121NUY"+date+"AOmain|AA"+patron+"|"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestConnection_AsksAgain(t *testing.T) {
	t.Parallel()
	h := start(t, func(*setup) {})
	m := h.connect()
	m.expect("97", "96")
	m.expect("97AZFEF5", "96AZFEF6")
	m.expect(signIn, "941")
	for range 8 {
		m.expect("garbage", "96")
	}
	m.expect("97", "941")
	m.expect(checkOut+"AY1AZ0000", "96AZFEF6")
	for range 8 {
		m.expect("\x00\x01", "96")
	}
	m.expect("42", "96")
	m.expectEnd()
	for result, want := range map[string]float64{"malformed": 19, "checksum": 1} {
		if got := h.count("circulation_sip2_messages_total", "none", result); got != want {
			t.Errorf("%v lines were counted as %s, want %v", got, result, want)
		}
	}
}

func TestConnection_EndsAfterALongLine(t *testing.T) {
	t.Parallel()
	m := start(t, func(*setup) {}).signedIn()
	m.expect(strings.Repeat("x", wire.MaxLine), "96")
	m.expect(strings.Repeat("x", 2*wire.MaxLine), "96")
	m.expectEnd()
}

func TestConnection_SlowAndSilentMachinesAreCutOff(t *testing.T) {
	t.Parallel()
	const short = 50 * time.Millisecond
	for name, c := range map[string]struct {
		shorten func(*sip2.Limits)
		unasked bool // it is signed in from the start
		sends   string
	}{
		"half a message":  {shorten: func(l *sip2.Limits) { l.Line = short }, unasked: true, sends: checkOut},
		"no login":        {shorten: func(l *sip2.Limits) { l.Login = short }, unasked: false, sends: status + "\r"},
		"a silent one":    {shorten: func(l *sip2.Limits) { l.Idle = short }, unasked: true, sends: ""},
		"one that is not": {shorten: func(l *sip2.Limits) { l.Login = 1 }, unasked: true, sends: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, func(s *setup) {
				c.shorten(&s.limits)
				if c.unasked {
					s.settings.Unasked = []string{"desk-1"}
				}
			})
			m := h.connect()
			m.send(c.sends)
			if name == "one that is not" {
				m.expect(checkOut, "121NUY"+date+"AOmain|AAP-1002|")
				return
			}
			// One that sends after the end gets a reset.
			if rest, err := io.ReadAll(m.in); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("got %q, %v, want the end", rest, err)
			}
			waitFor(t, "the end of the connection", func() bool { return h.count("circulation_sip2_connections") == 0 })
		})
	}
}

func TestListener_BoundsConnections(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) { s.limits.MaxConns = 1 })
	first := h.signedIn()
	h.connect().expectEnd()
	first.expect(checkOut, "121NUY"+date+"AOmain|AAP-1002|")
	if h.count("circulation_sip2_connections_total", "too_many") != 1 {
		t.Error("the connection was not counted")
	}
}

func TestHandler_PanicIsAnswered(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) {
		s.handlers[wire.PatronStatus] = func(context.Context, library.Terminal, wire.Request) wire.Answer { panic("broken") }
	})
	m := h.signedIn()
	m.expect("23001"+date+"AOmain|AAP-1|", "24YYYY          001"+date+"AOmain|AAP-1|AE|AFmachine.unavailable|")
	m.expect(checkOut, "121NUY"+date+"AOmain|AAP-1002|")
	if h.count("worker_panics_total", "sip2") != 1 {
		t.Error("the panic was not counted")
	}
}

func TestHandler_HasTheMachinesDeadline(t *testing.T) {
	t.Parallel()
	deadlines := make(chan time.Time, 1)
	h := start(t, func(s *setup) {
		s.terminals[1]["patienceMs"] = 7000
		s.handlers[wire.CheckOut] = func(ctx context.Context, terminal library.Terminal, r wire.Request) wire.Answer {
			deadline, _ := ctx.Deadline()
			deadlines <- deadline
			return lend(ctx, terminal, r)
		}
	})
	m := h.signedIn()
	check := func(most time.Duration) {
		t.Helper()
		asked := time.Now()
		m.ask(checkOut)
		answered := time.Now()
		if got := <-deadlines; got.Before(asked.Add(most)) || got.After(answered.Add(most)) {
			t.Errorf("the deadline is %s after the message, want %s", got.Sub(asked), most)
		}
	}
	check(patience - 500*time.Millisecond)
	m.expect("9300CNdesk-2|COdesk-2-password|", "941")
	check(6500 * time.Millisecond)
}

// The deadline counts from the message, also while storage is slow to say what the terminal is.
func TestHandler_HasTheMachinesDeadline_WhileStorageIsSlow(t *testing.T) {
	t.Parallel()
	const short = 1200 * time.Millisecond
	type limit struct{ most, deadline time.Time }
	limits := make(chan limit, 2)
	var asked time.Time // no earlier than the message
	h := start(t, func(s *setup) {
		s.handlers[wire.CheckOut] = func(ctx context.Context, terminal library.Terminal, r wire.Request) wire.Answer {
			deadline, _ := ctx.Deadline()
			limits <- limit{asked.Add(short - 500*time.Millisecond), deadline}
			return lend(ctx, terminal, r)
		}
	})
	h.others.terminal = &library.Terminal{Login: "stored", PatienceMs: policy.WholeNumber(short.Milliseconds())}
	m := h.connect()
	m.expect("9300CNstored|COany|", "941")
	h.others.wait = func(ctx context.Context) {
		asked = time.Now()
		deadline, _ := ctx.Deadline()
		limits <- limit{asked.Add((short - 500*time.Millisecond) / 2), deadline}
		<-ctx.Done()
	}
	m.ask(checkOut)
	for _, reader := range []string{"the look at the terminal", "the handler"} {
		if got := <-limits; got.deadline.After(got.most) {
			t.Errorf("%s has %s more than it may have", reader, got.deadline.Sub(got.most))
		}
	}
}

// A terminal without a setting of its own has the service's.
func TestListener_CompletesTheTerminal(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	h := start(t, func(s *setup) {
		s.settings.NoBlock, s.terminals[1]["noBlock"] = "refuse", "lend"
		s.handlers[wire.CheckOut] = func(ctx context.Context, terminal library.Terminal, r wire.Request) wire.Answer {
			seen <- terminal.NoBlock
			return lend(ctx, terminal, r)
		}
	})
	for login, want := range map[string]string{"desk-1": "refuse", "desk-2": "lend"} {
		m := h.connect()
		m.expect("9300CN"+login+"|CO"+login+"-password|", "941")
		m.ask(checkOut)
		if got := <-seen; got != want {
			t.Errorf("%s: got %q, want %q", login, got, want)
		}
	}
}

func TestListener_Drain_AnswersWhatRuns(t *testing.T) {
	t.Parallel()
	begun, finish := make(chan struct{}), make(chan struct{})
	h := start(t, func(s *setup) {
		s.handlers[wire.CheckOut] = func(ctx context.Context, terminal library.Terminal, r wire.Request) wire.Answer {
			close(begun)
			<-finish
			return lend(ctx, terminal, r)
		}
	})
	idle, busy := h.signedIn(), h.signedIn()
	busy.send(checkOut + "\r" + status + "\r")
	<-begun
	drained := make(chan error, 1)
	go func() { drained <- h.drain() }()
	idle.expectEnd()
	close(finish)
	if got := busy.read(); got != "121NUY"+date+"AOmain|AAP-1002|" {
		t.Errorf("got %q", got)
	}
	busy.expectEnd()
	if err := <-drained; err != nil {
		t.Error(err)
	}
}

// The machine names the language only when it asks about the patron.
func TestConnection_RemembersThePatronsLanguage(t *testing.T) {
	t.Parallel()
	m := start(t, func(s *setup) {
		spoken := func(_ context.Context, _ library.Terminal, r wire.Request) wire.Answer {
			return wire.NewAnswer("12", r.Spoken())
		}
		for _, code := range []string{wire.PatronStatus, wire.CheckOut, wire.EndSession, wire.BlockPatron} {
			s.handlers[code] = spoken
		}
	}).signedIn()
	of := func(patron string) string { return strings.Replace(checkOut, "P-1002", patron, 1) }
	for _, step := range []struct{ message, want string }{
		{message: of("P-1"), want: "12000"},
		{message: "23003" + date + "AO|AAP-1|", want: "12003"},
		{message: of("P-1"), want: "12003"},
		{message: of("P-2"), want: "12000"},
		{message: "23000" + date + "AO|AAP-1|", want: "12000"},
		{message: of("P-1"), want: "12000"},
		{message: "23008" + date + "AO|AAP-1|", want: "12008"},
		{message: "01N" + date + "AO|AAP-1|", want: "12008"},
		{message: "35" + date + "AO|AAP-1|", want: "12008"},
		{message: of("P-1"), want: "12000"},
	} {
		m.expect(step.message, step.want)
	}
}
