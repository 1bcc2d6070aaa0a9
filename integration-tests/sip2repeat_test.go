package integration_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	circulation "checkoutlock/circulation/app"
	"checkoutlock/integration-tests/stack"
)

// A repeat is answered like the first message, wherever it is sent.
func TestSIP2_RepeatsOfFinishedCheckOuts(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Circulations: 2, CirculationEnv: enableSIP2()}, 1)
	p.addTerminal(t)
	id, patron := p.addPatron(t)
	books := p.addBooks(t, 2)
	first := p.newMachine(t, p.Machines[0])
	others := map[string]*sipMachine{
		"the same connection": first, "another connection": p.newMachine(t, p.Machines[0]),
		"another instance": p.newMachine(t, p.Machines[1]),
	}
	lent, refused := newSIPCheckOut(patron, books[0]), newSIPCheckOut(patron, books[1])
	wantLent, wantRefused := first.ask(lent), first.ask(refused)
	if !strings.HasPrefix(wantLent, "121NUY") ||
		!strings.HasSuffix(wantRefused, "AFYou have reached the limit of 1 item of this kind.|") {
		t.Fatalf("got %s and %s", wantLent, wantRefused)
	}
	for where, m := range others {
		for message, want := range map[string]string{lent: wantLent, refused: wantRefused} {
			if got := withoutDate(m.ask(message)); got != withoutDate(want) {
				t.Errorf("%s: got  %s\nwant %s", where, got, want)
			}
		}
	}
	if got := p.readState(t, id, books[0]); got != lentOnce {
		t.Errorf("left %+v, want %+v", got, lentOnce)
	}
}

// withoutDate leaves out the time of an answer to a check-out.
func withoutDate(answer string) string {
	const begin, end = 6, 24
	if len(answer) < end {
		return answer
	}
	return answer[:begin] + answer[end:]
}

// gate lets a check-out of instance 0 sleep at a step, if it is armed.
type gate struct {
	armed          atomic.Bool
	reached, woken chan struct{}
	wake           func()
}

// startGatedPair starts two instances of circulation with a limit of 1. The check-out is woken before
// they stop.
func startGatedPair(t *testing.T, step circulation.Step, patience time.Duration) (*pair, *gate) {
	t.Helper()
	g := &gate{reached: make(chan struct{}), woken: make(chan struct{})}
	g.wake = sync.OnceFunc(func() { close(g.woken) })
	p := startPair(t, stack.Options{
		Circulations: 2, OnStep: atStep(0, step, g.pass),
		CirculationEnv: enableLock("SIP2_ADDR=127.0.0.1:0", "MACHINE_PATIENCE="+patience.String()),
	}, 1)
	t.Cleanup(g.wake)
	p.addTerminal(t)
	return p, g
}

func (g *gate) pass() {
	if g.armed.CompareAndSwap(true, false) {
		close(g.reached)
		<-g.woken
	}
}

func (g *gate) waitReached(t *testing.T) {
	t.Helper()
	select {
	case <-g.reached:
	case <-time.After(sipPatience):
		t.Fatalf("no check-out came to the step within %v", sipPatience)
	}
}

func TestSIP2_RepeatsOfRunningCheckOuts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		step circulation.Step
		// lentMeanwhile uses up the limit of 1 while the check-out sleeps.
		lentMeanwhile bool
		want          string
	}{
		{name: "before the lock", step: circulation.Validated, want: "121NUY"},
		{name: "after the commit", step: circulation.Committed, want: "121NUY"},
		{name: "refused at the commit", step: circulation.Validated, lentMeanwhile: true, want: "120NUN"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, g := startGatedPair(t, tt.step, sipPatience)
			id, patron := p.addPatron(t)
			books := p.addBooks(t, 2)
			message := newSIPCheckOut(patron, books[0])
			answers := make(chan string, 3)
			send := func(i int) {
				m := p.newMachine(t, p.Machines[i])
				go func() { answers <- m.ask(message) }()
			}
			g.armed.Store(true)
			send(0)
			g.waitReached(t)
			if tt.lentMeanwhile {
				p.newMachine(t, p.Machines[1]).lendForSure(newSIPCheckOut(patron, books[1]))
			}
			send(0)
			send(1)
			g.wake()
			for range cap(answers) {
				got := <-answers
				if !strings.HasPrefix(got, tt.want) || tt.lentMeanwhile != strings.Contains(got, "limit of 1 item") {
					t.Errorf("got %s", got)
				}
			}
			if n := p.countOpenLoans(t, id); n != 1 {
				t.Errorf("%d loans are open, want 1", n)
			}
		})
	}
}

// A machine's patron is sent to the staff while the check-out sleeps before the commit. A repeat lends
// once, wherever it is sent.
func TestSIP2_RepeatsOfUnknownOutcomes(t *testing.T) {
	t.Parallel()
	const same = -1
	for where, instance := range map[string]int{
		"the same connection": same, "another connection": 0, "another instance": 1,
	} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			p, g := startGatedPair(t, circulation.Validated, 10*time.Second)
			id, patron := p.addPatron(t)
			book := p.addBooks(t, 1)[0]
			m := p.newMachine(t, p.Machines[0])
			g.armed.Store(true)
			message := newSIPCheckOut(patron, book)
			got := m.ask(message)
			for range 10 { // on a slow host the check-out may not come to the step in time
				if !strings.Contains(got, "Please try again.") {
					break
				}
				got = m.ask(message)
			}
			if !strings.HasPrefix(got, "120NUN") || !strings.Contains(got, "We could not confirm this loan.") {
				t.Errorf("the first was answered with %s", got)
			}
			g.waitReached(t)
			if instance != same {
				m = p.newMachine(t, p.Machines[instance])
			}
			if got := m.ask(message); !strings.HasPrefix(got, "120NUN") {
				t.Errorf("a repeat meanwhile was answered with %s", got)
			}
			g.wake()
			m.lendForSure(message)
			if got := p.readState(t, id, book); got != lentOnce {
				t.Errorf("left %+v, want %+v", got, lentOnce)
			}
		})
	}
}

// Circulation is killed while machines lend. Each machine connects again and sends its last message
// again. Then every patron owes exactly the books that a machine handed out.
func TestSIP2_KilledCirculation(t *testing.T) {
	t.Parallel()
	const machines, limit = 6, 1000
	p := startPair(t, stack.Options{CirculationEnv: enableLock()}, limit)
	p.addTerminal(t)
	program, addr := buildProgram(t, "circulation"), fmt.Sprintf("127.0.0.1:%d", findFreePort(t))
	start := func() process {
		return startProgram(t, program, findFreePort(t),
			enableSIP2("SIP2_ADDR="+addr, "STORAGE_URL="+p.Storages[0], "STAFF_AUTH=none", "HTTP_ADDR=127.0.0.1")...)
	}
	c := start()
	ids, patrons := p.addPatrons(t, machines)
	var stop atomic.Bool
	t.Cleanup(func() { stop.Store(true) })
	handed := make([]int, machines) // books, by patron
	var lent atomic.Int64
	var running sync.WaitGroup
	for i, patron := range patrons {
		m := p.newMachine(t, addr)
		running.Go(func() {
			for !stop.Load() && m.lendForSure(newSIPCheckOut(patron, p.addBooks(t, 1)[0])) {
				handed[i]++
				lent.Add(1)
			}
		})
	}
	for range timesInTorture(2, 10) {
		before := lent.Load()
		waitUntil(t, patience, "machines lend", func() bool { return lent.Load() > before+2*machines })
		c.kill(t)
		c = start()
	}
	stop.Store(true)
	running.Wait()
	for i, id := range ids {
		if open := p.countOpenLoans(t, id); open != handed[i] || open == 0 {
			t.Errorf("a patron has %d open loans, and machines handed out %d books", open, handed[i])
		}
	}
	p.checkLoansAndItemsAgree(t)
}

// After a restart of circulation all machines come back at once. Each is signed in: those that wait
// longer than a machine's patience are not refused.
func TestSIP2_AllMachinesSignInAgainAfterARestart(t *testing.T) {
	t.Parallel()
	const machines, cost = 40, 10 // 60 ms each, two at a time: more than the patience of 1 s
	const turn = 20 * time.Second // the longest wait for a login
	p := startPair(t, stack.Options{CirculationEnv: enableLock()}, 9)
	all := make([]*sipMachine, machines)
	program, addr := buildProgram(t, "circulation"), fmt.Sprintf("127.0.0.1:%d", findFreePort(t))
	for i := range all {
		login := fmt.Sprintf("hall-%d", i)
		p.addTerminalOfCost(t, login, cost)
		all[i] = p.newMachine(t, addr)
		all[i].login = "9300CN" + login + "@" + p.Storage.Tenant + "|CO" + login + "-password|"
	}
	for range 2 {
		c := startProgram(t, program, findFreePort(t), enableLock("SIP2_ADDR="+addr, "MACHINE_PATIENCE=1s",
			"STORAGE_URL="+p.Storages[0], "STAFF_AUTH=none", "HTTP_ADDR=127.0.0.1")...)
		var running sync.WaitGroup
		for _, m := range all {
			running.Go(func() {
				for {
					m.hangUp()
					began := time.Now()
					err := m.connect()
					if err == nil {
						return
					}
					if took := time.Since(began); took < turn { // only a slow host takes longer
						t.Errorf("after %s: %v", took, err)
						return
					}
				}
			})
		}
		running.Wait()
		c.kill(t)
	}
}

// A check-in and a renewal that are sent to two instances at once happen once, and both are answered
// alike.
func TestSIP2_RepeatsAtTwoInstancesAtOnce(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Circulations: 2, CirculationEnv: enableSIP2()}, 1000)
	p.addTerminal(t)
	id, patron := p.addPatron(t)
	machines := []*sipMachine{p.newMachine(t, p.Machines[0]), p.newMachine(t, p.Machines[1])}
	for _, book := range p.addBooks(t, 5) {
		lend := newSIPCheckOut(patron, book)
		if got := machines[0].ask(lend); !strings.HasPrefix(got, "121") {
			t.Fatalf("got %s", got)
		}
		date := lend[4:22]
		p.askAtOnce(t, machines, "29NN"+date+strings.Repeat(" ", 18)+"AO|AA"+patron+"|AB"+book+"|", "301Y")
		loans := struct {
			Loans []struct {
				ItemID       string
				RenewalCount int
			}
		}{}
		p.readInto(t, "/loan-storage/loans?query="+url.QueryEscape(`userId=="`+id+`" and status.name=="Open"`), &loans)
		if len(loans.Loans) != 1 || loans.Loans[0].RenewalCount != 1 {
			t.Errorf("got %+v, want one loan that was renewed once", loans)
		}
		p.askAtOnce(t, machines, "09N"+date+date+"AP|AO|AB"+book+"|", "101Y")
		if n, status := p.countOpenLoans(t, id), p.readState(t, id, book).Status; n != 0 || status != "Available" {
			t.Errorf("%d loans are open after the return, and the item is %s", n, status)
		}
		if n := p.countRecords(t, "/check-in-storage/check-ins?limit=0&query=itemId=="+loans.Loans[0].ItemID); n != 1 {
			t.Errorf("the item was checked in %d times, want once", n)
		}
	}
}

// askAtOnce sends a message with all machines at once. All are answered alike.
func (p *pair) askAtOnce(t *testing.T, machines []*sipMachine, message, want string) {
	t.Helper()
	answers := make(chan string, len(machines))
	for _, m := range machines {
		go func() { answers <- m.ask(message) }()
	}
	first := <-answers
	if !strings.HasPrefix(first, want) {
		t.Errorf("%.2s got %s", message, first)
	}
	for range len(machines) - 1 {
		if got := <-answers; withoutDate(got) != withoutDate(first) {
			t.Errorf("%.2s got  %s\nand %s", message, first, got)
		}
	}
}
