package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"checkoutlock/integration-tests/stack"
)

const root = "../../.."

func TestReadme_HasTheSessionOfMakeRun(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := formatSession("diku", "http://127.0.0.1:9801", "http://127.0.0.1:8081")
	if !strings.Contains(string(readme), "\n```sh\n"+want+"```\n") {
		t.Errorf("README.md lacks the session, or has another one. make run prints:\n%s", want)
	}
}

// startRun is make run on free ports with a database of its own. It returns what is on the
// screen when all is ready. stop returns what came after that.
func startRun(t *testing.T, logFile string, environ ...string) (screen string, stop func() (string, error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	environ = append(strings.Fields(freePorts),
		append(environ, "LOG_FILE="+logFile, "DATA_DIR="+newDataDir(t), "PG_BIN="+os.Getenv("PG_BIN"))...)
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, environ, writer)
		_ = writer.Close() // it has no error
		ended <- err
	}()
	var lines strings.Builder
	buffered := bufio.NewReader(reader)
	for !strings.Contains(lines.String(), "/cmd/resource-locks") {
		line, err := buffered.ReadString('\n')
		lines.WriteString(line)
		if err != nil {
			cancel()
			t.Fatalf("make run ended: %v\n%s", <-ended, lines.String())
		}
	}
	rest := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(buffered) // the pipe has no error but its end
		rest <- string(text)
	}()
	return lines.String(), func() (string, error) {
		cancel()
		return <-rest, <-ended
	}
}

// runScript runs lines that make run prints and returns their output.
func runScript(t *testing.T, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-eu")
	cmd.Dir, cmd.Stdin = root, strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("the lines fail: %v\n%s", err, out)
	}
	return string(out)
}

func TestRun_PrintsWhatWorks(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the session needs %s: %v", program, err)
		}
	}
	const password = "twelve letters"
	logFile := filepath.Join(t.TempDir(), "log", "run.log")
	screen, stop := startRun(t, logFile, "STAFF_AUTH=basic", "STAFF_PASSWORD="+password, "TENANT=library")
	session := regexp.MustCompile(`(?s)\n(tenant=.*?done\n)\nA session of a self-check machine`).FindStringSubmatch(screen)
	commands := regexp.MustCompile(`(?m)(export DATABASE_URL|go run ).*$`).FindAllString(screen, -1)
	address := regexp.MustCompile(`http://\S+/staff/library/`).FindString(screen)
	if session == nil || len(commands) != 3 || address == "" || strings.Contains(screen, password) {
		t.Fatalf("got %q, %q and %q of\n%s", session, commands, address, screen)
	}

	wantStatuses := func(t *testing.T, script, want string) {
		t.Helper()
		out := runScript(t, script)
		if got := strings.Join(regexp.MustCompile(`(?m)^\d{3}$`).FindAllString(out, -1), " "); got != want {
			t.Errorf("got the statuses %s, want %s\n%s", got, want, out)
		}
	}
	t.Run("a program with the password may override a limit", func(t *testing.T) {
		functions, _, _ := strings.Cut(session[1], "echo ")
		wantStatuses(t, functions+`
			for dvd in D-2001 D-2002 D-2003; do check_out $dvd; done
			for password in wrong "`+password+`"; do
				call -u "ann:$password" $circulation/circulation/check-out-by-barcode \
					-d '{"itemBarcode":"D-2004","userBarcode":"P-1002","servicePointId":"'$desk'",
						"overrideBlocks":{"itemLimitBlock":{},"comment":"a visit"}}'
			done
			for dvd in D-2001 D-2002 D-2003 D-2004; do check_in $dvd; done`, "201 201 201 401 201 200 200 200 200")
	})
	t.Run("the session gets the statuses that it names", func(t *testing.T) {
		wantStatuses(t, session[1], "201 201 201 422 200 200 201 422 200 200 200")
	})
	t.Run("commands work on the printed database", func(t *testing.T) {
		if out := runScript(t, strings.Join(commands, "\n")); !strings.Contains(out, "f4cae63d-1227-401e-92a8-000d1a700c85") {
			t.Errorf("got no lock of the session in\n%s", out)
		}
	})
	t.Run("with a gateway, a permission in a header may override a limit", func(t *testing.T) {
		database := regexp.MustCompile(`DATABASE_URL='(.*)'`).FindStringSubmatch(commands[0])[1]
		screen, stop := startRun(t, filepath.Join(t.TempDir(), "run.log"),
			"STAFF_AUTH=gateway", "TENANT=gated", "DATABASE_URL="+database)
		functions := regexp.MustCompile(`(?s)\n(tenant=.*?\n)echo `).FindStringSubmatch(screen)
		settings, err := os.ReadFile(filepath.Join(root, "docs", "settings.md"))
		lines := regexp.MustCompile("(?s)`STAFF_AUTH=gateway make run`.*?```sh\n(.*?)```").FindSubmatch(settings)
		if functions == nil || lines == nil {
			t.Fatalf("got %q and %q, %v", functions, lines, err)
		}
		wantStatuses(t, functions[1]+string(lines[1]), "201 201 201 422 201 200 200 200 200")
		if _, err := stop(); err != nil {
			t.Error(err)
		}
	})
	t.Run("staff pages ask for the password", func(t *testing.T) {
		staff := stack.Client{Base: address}
		stranger, err := staff.Do(t.Context(), http.MethodGet, "", nil)
		if err != nil || !strings.Contains(string(stranger.Body), `type="password"`) {
			t.Errorf("got %d %s, %v, want the form for the password", stranger.Status, stranger.Body, err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("ann", password)
		staff.Header = r.Header
		if page, err := staff.Do(t.Context(), http.MethodGet, "", nil); err != nil || page.Status != http.StatusOK {
			t.Errorf("got %d, %v with the password", page.Status, err)
		}
	})

	rest, err := stop()
	if err != nil || rest != "\nEverything is stopped.\n" {
		t.Errorf("after the addresses came %q, %v", rest, err)
	}
	if log, err := os.ReadFile(logFile); err != nil || !strings.Contains(string(log), "ITEM_LIMIT_MATERIAL_TYPE") {
		t.Errorf("the log has no line of the refusal: %v\n%s", err, log)
	}
}
