// Command torture runs the tests of faults again and again, with long histories, and writes a table
// of what was seen:
//
//	make torture
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// subject is one kind of fault, and the tests of it in one package.
type subject struct {
	name   string
	folder string
	tests  string // a regular expression
}

const (
	services   = "integration-tests"
	locks      = "integration-tests/resourcelocks"
	storageSQL = "circulation-storage/internal/postgres"
	locksSQL   = "resource-locks/internal/postgres"
)

var subjects = []subject{
	{name: "the limit under load", folder: services, tests: "TestLimit_Holds.*|TestGroupLimit_Holds.*"},
	{name: "histories of patrons' locks, judged by porcupine", folder: services, tests: "TestLock_IsLinearizable"},
	{name: "histories of other locks, judged by porcupine", folder: locks, tests: "TestLocks_AreLinearizable"},
	{name: "processes killed", folder: services, tests: "TestKill_.*|TestEvents_OfKilledStorages|TestIdempotencyKey_FinishesACrashedCheckOut"},
	{name: "processes and PostgreSQL killed", folder: locks, tests: "TestKill_.*"},
	{name: "pauses", folder: services, tests: "TestFrozenCommit|TestLock_RefusesAHolderThatSlept|TestLock_TakenOverHolderAcquiresAgain"},
	{name: "pauses in a transaction", folder: storageSQL, tests: ".*Froze.*|TestInTx_RunsAgain.*"},
	{name: "clocks, judged by the database", folder: storageSQL, tests: "TestLockStore.*|.*OfTheFuture"},
	{name: "clocks set back", folder: locksSQL, tests: ".*AfterTheClockWasSetBack"},
	{name: "networks between the services", folder: services, tests: "TestLinkFaults.*|TestLock_(Fences|Lost).*"},
	{name: "networks to PostgreSQL, and its outages", folder: services, tests: "TestOutage_(Recovery|KeepsAcknowledgedLoans)|TestSplitPool"},
	{name: "outages of resource-locks", folder: locks, tests: "TestOutages"},
	{name: "PgBouncer, a burst", folder: services, tests: "TestOverload_ServesABurst"},
	{name: "the lock switched", folder: services, tests: "TestSettings_(TurnOn|Switched).*|TestDifferingEnvironments_.*"},
	{name: "hostile clients", folder: services, tests: "TestBadInput_.*"},
	{name: "hostile clients of resource-locks", folder: locks, tests: "TestBadInput_.*"},
	{name: "self-check machines that repeat, misbehave, and lose their circulation", folder: services, tests: "TestSIP2_.*"},
	{name: "a tenant moved to another cluster", folder: services, tests: "TestMoveTenant_.*"},
	{name: "start and stop", folder: services, tests: "TestShutdown_.*|TestStart_EightInstancesAtOnce|TestTenant_DownAndUp"},
}

func main() {
	report := flag.String("report", "", "the `file` for the table; empty writes none")
	rounds := flag.Int("rounds", 1, "how often each test runs")
	only := flag.String("only", "", "a regular `expression` for the subjects to run")
	flag.Parse()
	chosen, err := regexp.Compile(*only)
	if err == nil {
		err = run(context.Background(), chosen, *report, *rounds)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the tests of the chosen subjects.
func run(ctx context.Context, chosen *regexp.Regexp, report string, rounds int) error {
	var table strings.Builder
	fmt.Fprintf(&table, `# Reliability

What `+"`make torture`"+` saw on %s, with `+"`ROUNDS=%d`"+`. The tests say what must hold:
the promises of [ARCHITECTURE.md](../ARCHITECTURE.md#promises).

| What was done | Tests | Runs | Skipped | Failed | Time |
| --- | --- | --- | --- | --- | --- |
`, time.Now().UTC().Format(time.DateOnly), rounds)
	failed := 0
	for _, s := range subjects {
		if !chosen.MatchString(s.name) {
			continue
		}
		start := time.Now()
		ended, err := s.run(ctx, rounds)
		if err != nil {
			return err
		}
		failed += ended["fail"]
		row := fmt.Sprintf("| %s | `%s` | %d | %d | %d | %.0f s |\n", s.name, strings.ReplaceAll(s.tests, "|", `\|`),
			ended["pass"]+ended["fail"], ended["skip"], ended["fail"], time.Since(start).Seconds())
		table.WriteString(row)
		fmt.Fprint(os.Stdout, row)
	}
	if report != "" {
		if err := os.WriteFile(report, []byte(table.String()), 0o644); err != nil { //nolint:gosec // a document
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d tests failed", failed)
	}
	return nil
}

// run returns how many tests and parts of tests ended in each way.
func (s subject) run(ctx context.Context, rounds int) (map[string]int, error) {
	//nolint:gosec // the table names the tests
	cmd := exec.CommandContext(ctx, "go", "test", "-json", "-count", fmt.Sprint(rounds), "-parallel", "4",
		"-timeout", "20m", "-run", "^("+s.tests+")$", "./"+s.folder)
	cmd.Env = append(os.Environ(), "TORTURE=1")
	output, failure := cmd.Output()
	ended, printed := countEnds(output)
	if failure != nil && ended["fail"] == 0 || ended["pass"]+ended["fail"] == 0 {
		return nil, fmt.Errorf("%s: %w\n%s", s.name, failure, output)
	}
	if ended["fail"] > 0 {
		fmt.Fprintln(os.Stderr, printed)
	}
	return ended, nil
}

// countEnds reads what go test -json writes. It also returns the lines of tests that failed.
func countEnds(output []byte) (ended map[string]int, printed string) {
	ended = map[string]int{}
	lines := map[string]string{}
	scanner := bufio.NewScanner(bytes.NewReader(output))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var event struct{ Action, Test, Output string }
		if json.Unmarshal(scanner.Bytes(), &event) != nil || event.Test == "" {
			continue
		}
		switch event.Action {
		case "output":
			lines[event.Test] += event.Output
		case "fail":
			printed += lines[event.Test]
			fallthrough
		case "pass", "skip":
			ended[event.Action]++
			delete(lines, event.Test)
		}
	}
	return ended, printed
}
