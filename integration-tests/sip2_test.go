package integration_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"checkoutlock/integration-tests/stack"
)

// sipPatience is how long the machines of the tests wait for an answer.
const sipPatience = 30 * time.Second

// sipMachine behaves as self-check machines do: it keeps its connection, sends a message again after its
// time-out, and connects again when the connection ends.
type sipMachine struct {
	t     *testing.T
	addr  string
	login string
	conn  net.Conn
	in    *bufio.Reader
}

// enableSIP2 returns circulation's settings with the lock and SIP2 on.
func enableSIP2(more ...string) []string {
	return enableLock(append([]string{"SIP2_ADDR=127.0.0.1:0", "MACHINE_PATIENCE=" + sipPatience.String()}, more...)...)
}

// addTerminal registers the terminal of the tests.
func (p *pair) addTerminal(t *testing.T) {
	t.Helper()
	p.addTerminalOfCost(t, "desk-1", bcrypt.MinCost)
}

// addTerminalOfCost registers a terminal with the password of its login. Its hash is bcrypt's, as the race
// detector makes argon2id take a second.
func (p *pair) addTerminalOfCost(t *testing.T, login string, cost int) {
	t.Helper()
	terminal := record{"login": login, "name": "Hall", "servicePointId": p.ServicePointID}
	id := p.addRecord(t, "/self-check-terminals", terminal)
	hash, err := bcrypt.GenerateFromPassword([]byte(login+"-password"), cost)
	if err != nil {
		t.Fatal(err)
	}
	var stored string
	queryValue(t, p.databaseURL, &stored, "UPDATE "+p.tableName("self_check_terminal")+
		" SET password_hash = '"+string(hash)+"' WHERE id = '"+id+"' RETURNING password_hash")
}

// newMachine returns a machine that will connect to an address.
func (p *pair) newMachine(t *testing.T, addr string) *sipMachine {
	t.Helper()
	m := &sipMachine{t: t, addr: addr, login: "9300CNdesk-1@" + p.Storage.Tenant + "|COdesk-1-password|"}
	t.Cleanup(m.hangUp)
	return m
}

// startSIPPair starts a pair with SIP2 on and a terminal. newMachine returns machines of instance 0.
func startSIPPair(t *testing.T, limit int) (p *pair, newMachine func() *sipMachine) {
	t.Helper()
	p = startPair(t, stack.Options{CirculationEnv: enableSIP2()}, limit)
	p.addTerminal(t)
	return p, func() *sipMachine { return p.newMachine(t, p.Machines[0]) }
}

// ask returns the answer to a message. It fails the test if none comes within the patience, with all
// repeats.
func (m *sipMachine) ask(line string) string {
	var err error
	for range 3 {
		var answer string
		if answer, err = m.try(line); err == nil {
			return answer
		}
		m.hangUp()
	}
	m.t.Errorf("%.2s was not answered: %v", line, err)
	return ""
}

func (m *sipMachine) try(line string) (string, error) {
	if m.conn == nil {
		if err := m.connect(); err != nil {
			return "", err
		}
	}
	return m.exchange(line)
}

func (m *sipMachine) connect() (err error) {
	if m.conn, err = (&net.Dialer{}).DialContext(m.t.Context(), "tcp", m.addr); err != nil {
		return err
	}
	m.in = bufio.NewReader(m.conn)
	answer, err := m.exchange(m.login)
	if err == nil && answer != "941" {
		err = errors.New("the login was answered with " + answer)
	}
	return err
}

func (m *sipMachine) exchange(line string) (string, error) {
	if err := m.conn.SetDeadline(time.Now().Add(sipPatience)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(m.conn, line+"\r"); err != nil {
		return "", err
	}
	answer, err := m.in.ReadString('\r')
	return strings.TrimSuffix(answer, "\r"), err
}

// send sends without waiting.
func (m *sipMachine) send(text string) {
	m.t.Helper()
	if m.conn == nil {
		if err := m.connect(); err != nil {
			m.t.Fatal(err)
		}
	}
	if _, err := io.WriteString(m.conn, text); err != nil {
		m.t.Fatal(err)
	}
}

func (m *sipMachine) hangUp() {
	if m.conn != nil {
		_ = m.conn.Close() // nothing is lost
	}
	m.conn = nil
}

// lendForSure repeats a check-out, on a new connection where the old one has ended, until the item is
// lent. It reports whether it was.
func (m *sipMachine) lendForSure(line string) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		answer, err := m.try(line)
		if strings.HasPrefix(answer, "121") {
			return true
		}
		if err != nil {
			m.hangUp()
		}
		<-time.After(20 * time.Millisecond) // the service is not there
	}
	m.t.Errorf("nothing is lent: %s", line)
	return false
}

func newSIPCheckOut(patron, book string) string {
	return "11NN" + time.Now().Format("20060102    150405") + "                  AO|AA" + patron + "|AB" + book + "|AC|"
}

func TestSIP2_LimitHolds(t *testing.T) {
	t.Parallel()
	const limit, machines = 3, 20
	p := startPair(t, stack.Options{Circulations: 2, CirculationEnv: enableSIP2()}, limit)
	p.addTerminal(t)
	id, patron := p.addPatron(t)
	books := p.addBooks(t, machines)
	answers := make([]string, machines)
	var running sync.WaitGroup
	for i, book := range books {
		m := p.newMachine(t, p.Machines[i%2])
		running.Go(func() { answers[i] = m.ask(newSIPCheckOut(patron, book)) })
	}
	running.Wait()
	lent := 0
	for _, answer := range answers {
		switch {
		case strings.HasPrefix(answer, "121"):
			lent++
		case !strings.HasPrefix(answer, "120NUN") || !strings.Contains(answer, "limit of 3 items"):
			t.Errorf("a refusal is %q", answer)
		}
	}
	open, err := p.CountOpenLoans(t.Context(), id)
	if err != nil || lent != limit || open != limit {
		t.Errorf("%d were lent, and %d loans are open, %v; want %d", lent, open, err, limit)
	}
	p.checkNoLocks(t)
}

func TestSIP2_RepeatLendsOnce(t *testing.T) {
	t.Parallel()
	p, newMachine := startSIPPair(t, 9)
	now := time.Now().Format("20060102    150405")
	none := strings.Repeat(" ", 18)
	for name, date := range map[string]string{"with a date": now, "without one": none} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id, patron := p.addPatron(t)
			book := p.addBooks(t, 1)[0]
			m := newMachine()
			checkOut := "11NN" + date + none + "AO|AA" + patron + "|AB" + book + "|AC|"
			m.send(checkOut + "\r")
			m.hangUp() // before the answer
			first := m.ask(checkOut)
			if !strings.HasPrefix(first, "121N") || m.ask(checkOut) != first || m.ask("97") != first {
				t.Errorf("the repeat on a new connection was answered with %q, or the next ones otherwise", first)
			}
			if open := p.countOpenLoans(t, id); open != 1 {
				t.Errorf("%d loans are open, want 1", open)
			}
			if back := m.ask("09N" + now + now + "AP|AO|AB" + book + "|AC|"); !strings.HasPrefix(back, "101Y") {
				t.Errorf("the check-in was answered with %q", back)
			}
			if again := m.ask(checkOut); !strings.HasPrefix(again, "121N") {
				t.Errorf("the same bytes after the check-in were answered with %q", again)
			}
			if open := p.countOpenLoans(t, id); open != 1 {
				t.Errorf("%d loans are open after the same bytes, want 1", open)
			}
		})
	}
}

func TestSIP2_BadMachinesHarmNoOther(t *testing.T) {
	t.Parallel()
	p, newMachine := startSIPPair(t, 9)
	_, patron := p.addPatron(t)
	books := p.addBooks(t, 5)
	healthy, silent, slow := newMachine(), newMachine(), newMachine()
	silent.send("")
	slow.send("11NN2026")
	var bad sync.WaitGroup
	for _, garbage := range []string{"\x00\xff\x01", "garbage\r", strings.Repeat("x", 1000), "42\r", "9900802.00\r"} {
		bad.Go(func() {
			m := newMachine()
			if m.connect() != nil {
				return
			}
			for range 200 { // a flood, whose answers are not read
				if _, err := io.WriteString(m.conn, garbage); err != nil {
					return
				}
			}
		})
	}
	for _, book := range books {
		if answer := healthy.ask(newSIPCheckOut(patron, book)); !strings.HasPrefix(answer, "121N") {
			t.Errorf("the healthy machine got %q", answer)
		}
	}
	bad.Wait()
	if answer := healthy.ask("9900802.00"); !strings.HasPrefix(answer, "98YYYYNN300003") {
		t.Errorf("the status is %q", answer)
	}
}

// The terminal is that of docs/machines.md, which has no id.
func TestSIP2_TerminalOfAFileLendsAndReturns(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{}, 9)
	hash, err := bcrypt.GenerateFromPassword([]byte("desk-1-password"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	file, err := json.Marshal([]record{{
		"login": "desk-1", "tenant": p.Storage.Tenant, "name": "Hall", "servicePointId": p.ServicePointID,
		"passwordHash": string(hash),
	}})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "terminals.json")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := stack.Start(t.Context(), stack.Options{
		DatabaseURL: p.databaseURL, CirculationEnv: enableSIP2("SIP2_TERMINALS=" + name),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
	_, patron := p.addPatron(t)
	book, m := p.addBooks(t, 1)[0], p.newMachine(t, s.Machines[0])
	for _, exchange := range []struct{ send, want string }{
		{send: newSIPCheckOut(patron, book), want: "121N"},
		{send: "09N20260105    10151520260105    101515AP|AO|AB" + book + "|AC|", want: "101"},
	} {
		if got := m.ask(exchange.send); !strings.HasPrefix(got, exchange.want) {
			t.Errorf("%s: got %s, want %s", exchange.send, got, exchange.want)
		}
	}
}

// The texts are in the language of the message. A library's own ones win.
func TestSIP2_SpeaksToPatrons(t *testing.T) {
	t.Parallel()
	p, newMachine := startSIPPair(t, 1)
	askForUnknown := func(language string) string {
		return newMachine().ask("23" + language + "20260105    101500AO|AAP-0|AC|")
	}
	for language, want := range map[string]string{
		"001": "Card P-0 is not known here.", "003": "Der Ausweis P-0 ist hier nicht bekannt.",
		"008": "P-0 no se conoce", "015": "Card P-0 is not known here.",
	} {
		if got := askForUnknown(language); !strings.HasPrefix(got, "24YYYY") || !strings.Contains(got, want) {
			t.Errorf("in %s: got %s, want %s", language, got, want)
		}
	}
	own := record{"name": "selfCheckTexts", "value": record{"en": record{"machine.cardUnknown": "Who is {card}?"}}}
	readObject(t, callEndpoint(t, p.machines[0], http.MethodPost, "/circulation/settings", own), http.StatusCreated)
	waitUntil(t, patience, "the library's own text is shown", func() bool {
		return strings.Contains(askForUnknown("001"), "|AFWho is P-0?|")
	})
}
