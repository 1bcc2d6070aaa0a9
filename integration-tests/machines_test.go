package integration_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"checkoutlock/devpostgres/testserver"
	"checkoutlock/integration-tests/stack"
)

// machineProgram is a client of docs/machines that runs.
type machineProgram struct {
	in   io.WriteCloser
	out  *bufio.Scanner // what the screen shows
	errs *bufio.Scanner // the tries in between
}

// startMachine runs a client, which ends with the test.
func startMachine(t *testing.T, name string, args ...string) machineProgram {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, outErr := cmd.StdoutPipe()
	errs, errsErr := cmd.StderrPipe()
	if err := errors.Join(outErr, errsErr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return machineProgram{in: in, out: bufio.NewScanner(out), errs: bufio.NewScanner(errs)}
}

func (m machineProgram) send(t *testing.T, patron, book string) {
	t.Helper()
	if _, err := fmt.Fprintln(m.in, patron, book); err != nil {
		t.Fatal(err)
	}
}

// read returns the next line that begins with the text.
func read(t *testing.T, s *bufio.Scanner, begin string) {
	t.Helper()
	if !s.Scan() || !strings.HasPrefix(s.Text(), begin) {
		t.Fatalf("got %q, %v, want %q", s.Text(), s.Err(), begin)
	}
}

func TestMachines_LendThroughAnOutage(t *testing.T) {
	t.Parallel()
	programs := map[string]func(t *testing.T) []string{
		"Python": func(t *testing.T) []string {
			t.Helper()
			if _, err := exec.LookPath("python3"); err != nil {
				t.Skip("python3 is not installed")
			}
			return []string{"python3", "../docs/machines/machine.py"}
		},
		"Go": func(t *testing.T) []string {
			t.Helper()
			program := filepath.Join(t.TempDir(), "machine")
			build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../docs/machines/machine.go")
			build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			return []string{program}
		},
	}
	for name, build := range programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := build(t)
			pg := testserver.Start(t, nil)
			p := startPair(t, stack.Options{DatabaseURL: pg.URL(), CirculationEnv: enableLock("RETRY_INTERVAL_MS=100")}, 3)
			id, patron := p.addPatron(t)
			books := p.addBooks(t, 4)
			l := newLink(t, p.Circulations[0])
			l.addFault(linkFault{method: http.MethodPost, times: 1, handle: loseAnswer})
			m := startMachine(t, program[0], append(program[1:], l.url, p.Storage.Tenant, p.ServicePointID)...)

			m.send(t, patron, books[0])
			read(t, m.out, "lent "+books[0]+" 20")
			if calls := l.listCalls(); len(calls) != 3 || calls[2] != "POST "+checkOutPath {
				t.Errorf("called %q, want the timing, and the check-out twice", calls)
			}

			if err := pg.Kill(); err != nil {
				t.Fatal(err)
			}
			m.send(t, patron, books[1])
			for m.errs.Scan() && !strings.HasPrefix(m.errs.Text(), "again after 50") { // 503 or 504
			}
			if err := pg.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			read(t, m.out, "lent "+books[1]+" 20")

			go drain(m.errs)
			held := callEndpoint(t, p.Storage, http.MethodPost, acquirePath, record{"userId": id, "ttlMs": 1500})
			readObject(t, held, http.StatusCreated)
			m.send(t, patron, books[2])
			read(t, m.out, "lent "+books[2]+" 20")

			m.send(t, patron, books[3])
			read(t, m.out, "refused "+books[3]+" Patron has reached maximum limit of 3 items for material type")
			if n := p.countOpenLoans(t, id); n != 3 {
				t.Errorf("%d loans, want 3", n)
			}
			p.checkLoansAndItemsAgree(t)
		})
	}
}

// drain reads to the end.
func drain(s *bufio.Scanner) {
	for s.Scan() {
	}
}
