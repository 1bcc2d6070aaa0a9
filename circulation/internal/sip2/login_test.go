package sip2_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"
	"github.com/google/uuid"
	"golang.org/x/crypto/bcrypt"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/sip2"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas"
)

func TestLogin_RefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) {
		off := terminal("off")
		off["enabled"] = false
		far := terminal("far")
		far["addresses"] = []string{"10.0.0.0/8"}
		none := terminal("none")
		delete(none, "passwordHash")
		s.terminals = append(s.terminals, off, far, none)
	})
	for _, line := range []string{
		"9300CNdesk-1|COwrong|", "9300CNdesk-1|", "9300CNunknown|COdesk-1-password|", "9300CNdesk-1@other|COdesk-1-password|",
		"9300CNdesk-1@No Tenant|COdesk-1-password|", "9300|",
		"9310CNdesk-1|COdesk-1-password|", "9301CNdesk-1|COdesk-1-password|",
		"9300CNoff|COoff-password|", "9300CNfar|COfar-password|", "9300CNnone|CO|", "9300CNnone|COnone-password|",
	} {
		m := h.connect()
		m.expect(line, "940")
		m.expect(checkOut, "120NUN"+date+"AOmain|AAP-1002|ABD-2003|AJ|AH|AFmachine.notSignedIn|")
	}
}

func TestLogin_ThreeWrongOnesEndTheConnection(t *testing.T) {
	t.Parallel()
	h := start(t, func(*setup) {})
	m := h.signedIn()
	m.expect("9300CNdesk-1|COwrong|", "940")
	m.expect(signIn, "941")
	m.expect("9300CNdesk-1|COwrong|AY3", "940")
	m.expect(checkOut, "120NUN"+date+"AOmain|AAP-1002|ABD-2003|AJ|AH|AFmachine.notSignedIn|")
	m.expect("9300CNdesk-1|COwrong|", "940")
	m.expect("9300CNdesk-1|COwrong|", "940")
	m.expectEnd()
	waitFor(t, "what was counted", h.reports.is("desk-1", func(s schemas.TerminalState) bool {
		return len(s.Counts) > 0 && s.Counts[0] == schemas.TerminalCounts{WrongLogins: 4}
	}))
}

func TestLogin_WrongOnesAreSlow(t *testing.T) {
	t.Parallel()
	const wrong = 30 * time.Millisecond
	h := start(t, func(s *setup) { s.limits.Wrong = wrong })
	m := h.connect()
	for i, least := range []time.Duration{wrong, wrong, 2 * wrong} {
		began := time.Now()
		m.expect("9300CNdesk-1|COwrong|", "940")
		if took := time.Since(began); took < least {
			t.Errorf("wrong login %d took %s, want %s at least", i+1, took, least)
		}
	}
}

// A right PIN ends the wait, but a message in which none is compared does not.
func TestPIN_GuessesAreSlow(t *testing.T) {
	t.Parallel()
	const wrong = 300 * time.Millisecond
	h := start(t, func(s *setup) {
		s.limits.Wrong = wrong
		s.handlers[wire.PatronStatus] = func(ctx context.Context, t library.Terminal, r wire.Request) wire.Answer {
			a := lend(ctx, t, r)
			if pin := r.Field("AD"); pin != "no PIN" {
				a.RightPIN = new(pin == "1234")
			}
			return a
		}
	})
	ask := func(pin string) time.Duration {
		m, began := h.signedIn(), time.Now()
		m.ask("23001" + date + "AOmain|AAP-1002|AC|AD" + pin + "|")
		return time.Since(began)
	}
	for _, step := range []struct {
		pin   string
		least time.Duration // until the answer
	}{
		{pin: "1"},
		{pin: "2", least: wrong},
		{pin: "no PIN", least: 2 * wrong},
		{pin: "1234", least: 2 * wrong},
	} {
		if took := ask(step.pin); took < step.least {
			t.Errorf("%s was answered after %s, want %s at least", step.pin, took, step.least)
		}
	}
	for try := 1; ask("3") >= 2*wrong; try++ { // a busy host may stand still
		if try == 10 {
			t.Fatalf("a guess after a right PIN was answered after %s %d times", 2*wrong, try)
		}
		ask("1234")
	}
}

// PINs of a card on many connections wait for each other, so that wrong ones slow the others. Right ones
// are not slowed.
func TestPIN_GuessesAtOnceAreSlow(t *testing.T) {
	t.Parallel()
	const wrong, machines = 150 * time.Millisecond, 8
	for _, right := range []bool{false, true} {
		t.Run(fmt.Sprintf("right is %t", right), func(t *testing.T) {
			t.Parallel()
			var atOnce atomic.Int32
			var compared []time.Time
			h := start(t, func(s *setup) {
				s.limits.Wrong = wrong
				if !right { // so that some are refused
					s.terminals[0]["patienceMs"] = 2000
				}
				s.handlers[wire.PatronStatus] = func(ctx context.Context, to library.Terminal, r wire.Request) wire.Answer {
					if atOnce.Add(1) > 1 {
						t.Error("two PINs of a card are compared at once")
					}
					defer atOnce.Add(-1)
					compared = append(compared, time.Now())
					a := lend(ctx, to, r)
					a.RightPIN = &right
					return a
				}
			})
			var all []*machine
			for range machines {
				all = append(all, h.signedIn())
			}
			for i, m := range all {
				m.send("23001" + date + fmt.Sprintf("AOmain|AAP-1002|AC|AD%d|\r", i))
			}
			refused := 0
			for _, m := range all {
				if strings.Contains(m.read(), "machine.tryAgain") {
					refused++
				}
			}
			if len(compared)+refused != machines || len(compared) < 2 || right && refused > 0 {
				t.Errorf("%d PINs were compared and %d refused", len(compared), refused)
			}
			for i, at := range compared[1:] {
				least := min(wrong<<i, 2*time.Second)
				if after := at.Sub(compared[i]); !right && after < least {
					t.Errorf("guess %d was compared %s after the one before, want %s at least", i+2, after, least)
				}
			}
		})
	}
}

func TestLogin_AcceptsArgon2id(t *testing.T) {
	t.Parallel()
	params := argon2id.Params{Memory: 1024, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32}
	hash, err := argon2id.CreateHash("desk-1-password", &params)
	if err != nil {
		t.Fatal(err)
	}
	h := start(t, func(s *setup) { s.terminals[0]["passwordHash"] = hash })
	h.signedIn()
	h.connect().expect("9300CNdesk-1|COwrong|", "940")
}

// The first login comes before the service knows the terminal, and its characters.
func TestLogin_IsReadAlikeEachTime(t *testing.T) {
	t.Parallel()
	hash, err := bcrypt.GenerateFromPassword([]byte("pässwörd"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	h := start(t, func(s *setup) {
		s.terminals[0]["passwordHash"], s.terminals[0]["characterSet"] = string(hash), "windows-1252"
	})
	m := h.connect()
	for range 2 {
		m.expect("9300CNdesk-1|COp\x84ssw\x94rd|", "941")
	}
}

func TestLogin_TakesTheServicePointOfTheMachine(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) {
		s.terminals[0]["servicePointFromLogin"] = true
		s.handlers["11"] = sayServicePoint
	})
	m := h.connect()
	m.expect("9300CNdesk-1|COdesk-1-password|CPcd1|", "941")
	m.expect(checkOut, "12cd1-id")
}

func TestLogin_Unasked(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) {
		s.terminals[0]["addresses"] = []string{"10.0.0.0/8", "192.0.2.7"}
		s.terminals[1]["addresses"] = []string{"127.0.0.0/8"}
		s.terminals[1]["name"] = "Sorter"
		s.settings.Unasked = []string{"desk-1@diku", "unknown", "desk-2"}
	})
	m := h.connect()
	if got := m.ask(status); !strings.HasSuffix(got, "|ANSorter|") {
		t.Errorf("got %q", got)
	}
	m.expect(checkOut, "121NUY"+date+"AOmain|AAP-1002|")
}

// Records name the terminal as the acting user, by a UUID.
func TestLogin_GivesATerminalOfAFileAnID(t *testing.T) {
	t.Parallel()
	ids := map[string]string{}
	for _, login := range []string{"desk-1", "desk-2", "DESK-1"} {
		h := start(t, func(s *setup) {
			s.terminals = []map[string]any{terminal(login)}
			s.handlers["11"] = func(_ context.Context, t library.Terminal, _ wire.Request) wire.Answer {
				return wire.NewAnswer("12", t.ID)
			}
		})
		m := h.connect()
		m.expect("9300CN"+login+"|CO"+login+"-password|", "941")
		id := strings.TrimPrefix(m.ask(checkOut), "12")
		if err := uuid.Validate(id); err != nil {
			t.Errorf("%s has the id %q: %v", login, id, err)
		}
		ids[login] = id
	}
	if ids["desk-1"] == ids["desk-2"] || ids["desk-1"] != ids["DESK-1"] {
		t.Errorf("got %v, want one id for each login", ids)
	}
}

func TestLogin_PasswordInEachMessage(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) {
		s.terminals[0]["passwordAlways"], s.terminals[1]["passwordAlways"] = true, true
		s.terminals[0]["addresses"] = []string{"127.0.0.2"}
		s.settings.Unasked = []string{"desk-2"}
	})
	const lent = "121NUY" + date + "AOmain|AAP-1002|"
	const refused = "120NUN" + date + "AOmain|AAP-1002|ABD-2003|AJ|AH|AFmachine.notSignedIn|"
	for name, login := range map[string]string{"after a login": "9300CNdesk-2|COdesk-2-password|", "without one": status} {
		t.Run(name, func(t *testing.T) {
			m := h.connect()
			m.ask(login)
			m.expect(checkOut, refused)
			m.expect(checkOut+"ACdesk-2-password|", lent)
			m.expect(checkOut+"ACdesk-1-password|", refused)
			m.expect(checkOut+"AC|", refused)
			m.expectEnd()
		})
	}
	if got := h.count("circulation_sip2_logins_total", "wrong"); got != 6 {
		t.Errorf("%v wrong passwords were counted, want 6", got)
	}
}

func TestLogin_PasswordInEachMessage_MayBeReplaced(t *testing.T) {
	t.Parallel()
	h := start(t, func(*setup) {})
	stored := library.Terminal{Login: "stored", Version: 1, Institution: "main", PasswordAlways: true}
	h.others.terminal, h.others.password = &stored, "old-password"
	const lent = "121NUY" + date + "AOmain|AAP-1002|"
	m := h.connect()
	m.expect("9300CNstored|COold-password|", "941")
	m.expect(checkOut+"ACold-password|", lent)
	stored.Version, h.others.password = 2, "new-password"
	m.expect(checkOut+"ACold-password|", "120NUN"+date+"AOmain|AAP-1002|ABD-2003|AJ|AH|AFmachine.notSignedIn|")
	m.expect(checkOut+"ACnew-password|", lent)
	stored.ID, stored.Version, h.others.password = "made anew", 2, "third-password"
	m.expect(checkOut+"ACnew-password|", "120NUN"+date+"AOmain|AAP-1002|ABD-2003|AJ|AH|AFmachine.notSignedIn|")
}

func TestTerminal_ChangesAreInForceForTheNextMessage(t *testing.T) {
	t.Parallel()
	h := start(t, func(*setup) {})
	stored := library.Terminal{Login: "stored", Name: "Hall", ServicePointID: "sp", Institution: "one"}
	h.others.set(&stored, false)
	m := h.connect()
	m.expect("9300CNstored|COany|", "941")
	stored.Institution = "two"
	m.expect(checkOut, "121NUY"+date+"AOtwo|AAP-1002|")
	h.others.set(&stored, true)
	m.expect("23001"+date+"AO|AAP-1|", "121NUY"+date+"AOtwo|AAP-1|")
	h.connect().expect("9300CNstored|COany|", "940")
	h.others.set(nil, false)
	m.expect(checkOut, "120NUN"+date+"AOmain|AAP-1002|ABD-2003|AJ|AH|AFmachine.notSignedIn|")
	m.expectEnd()
	if h.count("circulation_sip2_logins_total", "failed") != 1 {
		t.Error("a login without storage is no wrong one")
	}
}

func TestSettings_NameAllThatIsWrong(t *testing.T) {
	t.Parallel()
	wrong := terminal("a b")
	wrong["tenant"], wrong["characterSet"], wrong["patienceMs"], wrong["timeZone"] = "NO", "ebcdic", 5, "Mars"
	wrong["passwordHash"], wrong["addresses"], wrong["servicePointId"] = "plain", []string{"here"}, ""
	sorter := terminal("sorter")
	sorter["servicePointFromLogin"] = true
	delete(sorter, "servicePointId")
	s := sip2.Settings{
		Addr: "6001", Tenant: "NO", Unasked: []string{"@", "Sorter@diku"}, NoBlock: "always", CertFile: "none.pem",
		TerminalFile: writeTerminals(t, []any{wrong, terminal("twice"), terminal("TWICE"), sorter}),
	}
	err := s.Validate()
	if err == nil {
		t.Fatal("wrong settings are accepted")
	}
	for _, name := range []string{
		"SIP2_ADDR", "SIP2_TENANT", "SIP2_LOGINS", "SIP2_NO_BLOCK", "SIP2_TLS_CERT",
		"tenant:", "characterSet", "patienceMs", "timeZone", "passwordHash", "addresses", "servicePointId",
		"login", "another one", `"Sorter@diku"`,
	} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
	s.Addr = ""
	if err := s.Validate(); err != nil {
		t.Errorf("the settings of a front that is off are refused: %v", err)
	}
}

func TestListener_TLS(t *testing.T) {
	t.Parallel()
	cert, key := writeCertificate(t)
	h := start(t, func(s *setup) { s.settings.CertFile, s.settings.KeyFile = cert, key })
	trusting := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}
	dialer := tls.Dialer{Config: trusting}
	conn, err := dialer.DialContext(t.Context(), "tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t, conn)
	m.expect(signIn, "941")
	m.expect(checkOut, "121NUY"+date+"AOmain|AAP-1002|")
}
