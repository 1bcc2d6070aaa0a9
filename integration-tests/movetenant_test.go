package integration_test

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"checkoutlock/devpostgres/testserver"
	"checkoutlock/integration-tests/stack"
)

// refusalLimit is the longest time without a check-out while a tenant moves. It suits slow hosts:
// two cores of 2026 need 3 to 6 s for 100 MB.
const refusalLimit = 30 * time.Second

// megabytes is the least size of the tenant that moves under load.
var megabytes, _ = strconv.Atoi(cmp.Or(os.Getenv("MOVED_MEGABYTES"), "20"))

var findSocat = findPackaged("socat", "socat")

// move is a library between two clusters, with a proxy that leads to the group of its tenant.
type move struct {
	*pair     // with the storage of the first cluster; circulation 2 passes the proxy by
	urls      [2]string
	groups    [2]stack.Client // the storages of each cluster
	programs  string
	directory string
}

// startMove starts two clusters. The library is in the first one, the group north.
func startMove(t *testing.T) *move {
	t.Helper()
	if _, err := findSocat(); err != nil {
		t.Skipf("there is no socat to test with (on Debian, as root: apt-get install socat): %v", err)
	}
	m := &move{directory: t.TempDir()}
	for i := range m.urls {
		m.urls[i] = testserver.Start(t, nil).URL()
	}
	m.programs = findClientPrograms(t, m.urls[0])
	storage := "127.0.0.1:" + strconv.Itoa(findFreePort(t))
	m.pair = startPair(t, stack.Options{
		DatabaseURL: m.urls[0], Circulations: 3, CirculationEnv: enableLock("LOCK_TTL_MS=1000"),
		CirculationEnvOf: func(int) []string { return []string{"HTTP_ADDR=127.0.0.1", "STORAGE_READY_TENANT=ready"} },
		Via: func(i int, direct string) string {
			if i == 2 {
				return direct
			}
			return "http://" + storage
		},
	}, 1000)
	second, err := stack.Start(t.Context(), stack.Options{DatabaseURL: m.urls[1]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := second.Stop(); err != nil {
			t.Error(err)
		}
	})
	m.groups = [2]stack.Client{m.Storage, newClient(second.Storages[0], m.Storage.Tenant)}
	m.writeMap(t, "north")
	runHAProxy(t, "../deploy/tenants.cfg", map[string]string{
		"bind :8081": "bind " + storage, "/run/haproxy/admin.sock": m.directory + "/admin.sock",
		"/etc/haproxy/tenants.map":              m.directory + "/tenants.map",
		"    server storage-2 storage-2:8081\n": "", "    server storage-4 storage-4:8081\n": "",
		"    server away-2 storage-2:8081 backup no-check\n": "", "    server away-4 storage-4:8081 backup no-check\n": "",
		" storage-1:8081": " " + hostOf(m.groups[0].Base), " storage-3:8081": " " + hostOf(m.groups[1].Base),
	})
	m.machines = m.machines[:2]
	waitUntil(t, patience, "the proxy leads to a storage", func() bool {
		return callEndpoint(t, m.machines[0], http.MethodGet, "/circulation/loans?limit=0", nil).Status == http.StatusOK
	})
	return m
}

func (m *move) writeMap(t *testing.T, group string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(m.directory, "tenants.map"), []byte(m.mapText(group)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (m *move) mapText(group string) string {
	return "# tenant group\nready north\nother south\n" + m.Storage.Tenant + " " + group + "\n"
}

// command returns the script that moves the tenant to a group, 0 or 1. Programs in the folder first
// come before all others.
func (m *move) command(t *testing.T, to int, first string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../deploy/move-tenant", m.Storage.Tenant, [...]string{"north", "south"}[to])
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = append(os.Environ(), "PATH="+first+":"+m.programs+":"+os.Getenv("PATH"), "FROM_URL="+m.urls[1-to],
		"TO_URL="+m.urls[to], "MAP="+m.directory+"/tenants.map", "HAPROXY=UNIX-CONNECT:"+m.directory+"/admin.sock")
	return cmd
}

func (m *move) run(t *testing.T, to int) string {
	t.Helper()
	out, err := m.command(t, to, "").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// writeProgram writes a program of a shell for the folder that comes first.
func writeProgram(t *testing.T, folder, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// callNext returns the line that calls the program of the same name in the folders after the first.
func callNext(name string) string { return `PATH=${PATH#*:} exec ` + name + ` "$@"` + "\n" }

// servedBy returns the clusters that have the tenant.
func (m *move) servedBy(t *testing.T) (clusters []int) {
	t.Helper()
	for i, url := range m.urls {
		var has bool
		queryValue(t, url, &has, `SELECT to_regnamespace($1) IS NOT NULL`, schemaName(m.Storage.Tenant))
		if has {
			clusters = append(clusters, i)
		}
	}
	return clusters
}

// fillLibrary stores closed loans until the tenant has so many megabytes.
func (m *move) fillLibrary(t *testing.T, megabytes int) {
	t.Helper()
	for size := 0; size < megabytes; {
		execSQL(t, m.urls[0], fmt.Sprintf(`INSERT INTO %s (id, jsonb) SELECT id, jsonb_build_object('id', id, '_version', 1,
			'userId', gen_random_uuid(), 'itemId', gen_random_uuid(), 'action', 'checkedin', 'loanPolicyId', '%s',
			'status', jsonb_build_object('name', 'Closed'), 'loanDate', '2026-01-01T00:00:00.000+00:00',
			'dueDate', '2026-02-01T00:00:00.000+00:00')
			FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, 2500)) AS made`, m.tableName("loan"), m.PolicyID))
		queryValue(t, m.urls[0], &size, `SELECT sum(pg_total_relation_size(oid))::bigint >> 20 FROM pg_class
			WHERE relkind = 'r' AND relnamespace = $1::regnamespace`, schemaName(m.Storage.Tenant))
	}
}

func TestMoveTenant_UnderLoad(t *testing.T) {
	t.Parallel()
	m := startMove(t)
	m.fillLibrary(t, megabytes)
	_, patrons := m.addPatrons(t, 40)
	books := m.addBooks(t, 4000)
	through, end := startPatientWorkload(t, m.pair, 4, patrons[:20], books[:2000], 200*time.Millisecond)
	past := *m.pair
	past.machines = []stack.Client{newClient(m.Circulations[2], m.Storage.Tenant)}
	direct, endDirect := startPatientWorkload(t, &past, 2, patrons[20:], books[2000:], 200*time.Millisecond)
	through.waitForOutcomes(t, 20, 0)
	direct.waitForOutcomes(t, 20, 0)

	said := m.run(t, 1)
	through.waitForOutcomes(t, 20, 0)
	direct.waitForOutcomes(t, 0, 1)
	end()
	endDirect()
	t.Logf("%s The longest pause was %s, with %d refusals", said, through.pause.Round(time.Millisecond), through.failed)
	if through.pause > refusalLimit {
		t.Errorf("no check-out for %s, want at most %s", through.pause, refusalLimit)
	}
	if len(through.badAnswers) > 0 {
		t.Errorf("machines were answered %q", through.badAnswers)
	}
	for _, answer := range direct.badAnswers { // past the proxy
		if !strings.HasPrefix(answer, "404") || !strings.Contains(answer, "Unknown tenant") {
			t.Errorf("a machine at the old cluster was answered %s", answer)
		}
	}
	if got := m.servedBy(t); !slices.Equal(got, []int{1}) {
		t.Errorf("the clusters %v have the tenant, want the second alone", got)
	}
	var left int
	loans := slices.Concat(through.lent, direct.lent)
	queryValue(t, m.urls[1], &left, `SELECT count(*) FROM `+m.tableName("loan")+` WHERE id = ANY($1::uuid[])`, loans)
	if left != len(loans) {
		t.Errorf("%d of %d acknowledged loans are in the new cluster", left, len(loans))
	}
	queryValue(t, m.urls[1], &left, `SELECT count(*) FROM (SELECT FROM `+m.tableName("loan")+
		` WHERE is_open GROUP BY item_id HAVING count(*) > 1) AS twice`)
	if left != 0 {
		t.Errorf("%d items are lent twice", left)
	}
}

// TestMoveTenant_FromStoragesThatNameIt moves a tenant of TENANTS. Its old storages go on for another one,
// and do not install it again.
func TestMoveTenant_FromStoragesThatNameIt(t *testing.T) {
	t.Parallel()
	m := startMove(t)
	checkServes := func(when string, move func()) {
		t.Helper()
		s, err := stack.Start(t.Context(), stack.Options{
			DatabaseURL: m.urls[0], StorageEnv: []string{"TENANTS=" + m.Storage.Tenant + ",other"},
		})
		if err != nil {
			t.Fatal(err)
		}
		move()
		checkHealth(t, s.Storages[0], http.StatusOK)
		a := callEndpoint(t, newClient(s.Storages[0], "other"), http.MethodGet, "/groups", nil)
		if has := m.servedBy(t); a.Status != http.StatusOK || !slices.Equal(has, []int{1}) {
			t.Errorf("%s: the other tenant got %d %s, and the clusters %v have the moved one", when, a.Status, a.Body, has)
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
	checkServes("after the move", func() { m.run(t, 1) })
	checkServes("after a start", func() {})
}

// TestMoveTenant_KilledAnywhere kills the script before each call of a program, and runs it again.
func TestMoveTenant_KilledAnywhere(t *testing.T) {
	t.Parallel()
	m := startMove(t)
	id, patron := m.addPatron(t)
	calls, at := 0, 0
	for n := 1; calls == 0; n++ {
		if n > 40 {
			t.Fatal("the script does not end")
		}
		to := 1 - at
		killed := m.killAt(t, to, n)
		if !killed {
			calls = n - 1
		}
		if has := m.servedBy(t); len(has) > 1 {
			t.Fatalf("killed before call %d, both clusters have the tenant", n)
		}
		if killed {
			m.run(t, to)
		}
		if has := m.servedBy(t); !slices.Equal(has, []int{to}) {
			t.Fatalf("killed before call %d and run again, the clusters %v have the tenant, want %d", n, has, to)
		}
		m.Storage = m.groups[to]
		readObject(t, m.lendBook(t, n%2, m.addBooks(t, 1)[0], patron), http.StatusCreated)
		if loans := m.countOpenLoans(t, id); loans != n {
			t.Fatalf("after %d moves the patron has %d loans", n, loans)
		}
		execSQL(t, m.urls[at], "DROP SCHEMA "+schemaName(m.Storage.Tenant)+"_moved CASCADE")
		at = to
	}
	if calls < 10 {
		t.Errorf("the script called %d programs, want all its steps", calls)
	}
	m.checkLoansAndItemsAgree(t)
}

// killAt runs the script until it calls a program for the n-th time. It reports whether it did.
func (m *move) killAt(t *testing.T, to, n int) bool {
	t.Helper()
	folder := t.TempDir()
	count := filepath.Join(folder, "count")
	for _, program := range []string{"psql", "pg_dump", "socat"} {
		writeProgram(t, folder, program, fmt.Sprintf("echo >>%s\n[ $(wc -l <%s) -ge %d ] && kill -9 0\n%s",
			count, count, n, callNext(program)))
	}
	out, err := m.command(t, to, folder).CombinedOutput()
	if err == nil {
		return false
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("%v\n%s", err, out)
	}
	// PostgreSQL ends the killed session once it notices.
	waitUntil(t, patience, "the old cluster has no session of the script", func() (over bool) {
		queryValue(t, m.urls[1-to], &over, `SELECT count(*) = 0 FROM pg_stat_activity
			WHERE application_name IN ('psql', 'pg_dump')`)
		return over
	})
	return true
}

// checkRunFails runs the script to the second cluster. It fails the test unless the script fails, says
// so, and leaves the tenant in the first cluster.
func (m *move) checkRunFails(t *testing.T, group, first, says string) {
	t.Helper()
	cmd := m.command(t, 1, first)
	cmd.Args[2] = group
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), says) || strings.Contains(string(out), " is in ") {
		t.Errorf("%v, %s\nwant a failure that says %q", err, out, says)
	}
	if has := m.servedBy(t); !slices.Equal(has, []int{0}) {
		t.Fatalf("the clusters %v have the tenant, want the first alone", has)
	}
}

// TestMoveTenant_Fails has runs that fail before the rename. None of them says that the tenant has
// moved, and the last move has all loans.
func TestMoveTenant_Fails(t *testing.T) {
	t.Parallel()
	m := startMove(t)
	m.machines = append(m.machines, newClient(m.Circulations[2], m.Storage.Tenant)) // passes the proxy by
	id, patron := m.addPatron(t)
	lent := 0
	const (
		failDump  = `>"${0%/*}/dumped"; exit 1`
		afterDump = `[ -e "${0%/*}/dumped" ] && `
		terminate = "kill -TERM 0\n" // the script too, like Ctrl-C
		halfAMap  = `case "$*" in *g=*) echo '# ten' && exit 2 ;; esac` + "\n"
	)
	tests := []struct {
		name     string
		group    string // south if there is none
		copied   bool   // an earlier run left a copy
		programs map[string]string
		says     string
		mapped   string // the group in the map afterwards
	}{
		{name: "HAProxy does not have the group", group: "sotuh", says: "HAProxy has no backend sotuh", mapped: "north"},
		{name: "the group has no storages", group: "moving", says: "moving has no storages", mapped: "north"},
		{
			name: "the dump fails", copied: true, programs: map[string]string{"pg_dump": "exit 1"},
			says: "nothing has changed", mapped: "north",
		},
		{
			name: "the dump is not whole", copied: true,
			programs: map[string]string{"pg_dump": "PATH=${PATH#*:}\npg_dump \"$@\" | sed '/^COPY /,$d'\nexit 1"},
			says:     "nothing has changed", mapped: "north",
		},
		{
			name: "the map cannot be written", says: "nothing has changed", mapped: "north",
			programs: map[string]string{"awk": halfAMap + callNext("awk")},
		},
		{
			name: "the map cannot be written after the dump", says: "run it again", mapped: "moving",
			programs: map[string]string{"pg_dump": failDump, "awk": afterDump + halfAMap + callNext("awk")},
		},
		{
			name: "terminated twice", says: "nothing has changed", mapped: "north", programs: map[string]string{
				"pg_dump": `>"${0%/*}/dumped";` + terminate, "awk": afterDump + terminate + callNext("awk"),
			},
		},
		{
			name: "HAProxy does not answer",
			programs: map[string]string{
				"pg_dump": failDump, "socat": afterDump + "exit 1\n" + callNext("socat"),
			},
			says: "run it again", mapped: "north",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m.writeMap(t, "north")
			if test.copied {
				execSQL(t, m.urls[1], "CREATE SCHEMA IF NOT EXISTS "+schemaName(m.Storage.Tenant)+"_moving")
			}
			folder := t.TempDir()
			for program, text := range test.programs {
				writeProgram(t, folder, program, text)
			}
			m.checkRunFails(t, cmp.Or(test.group, "south"), folder, test.says)
			text, err := os.ReadFile(m.directory + "/tenants.map")
			if want := m.mapText(test.mapped); err != nil || string(text) != want {
				t.Errorf("the map is %q, want %q (%v)", text, want, err)
			}
			checkHealth(t, m.Circulations[0], http.StatusOK) // wherever the map leads the tenant
			readObject(t, m.lendBook(t, 2, m.addBooks(t, 1)[0], patron), http.StatusCreated)
			lent++
			if loans := m.countOpenLoans(t, id); loans != lent {
				t.Errorf("the patron has %d loans, want %d", loans, lent)
			}
		})
	}

	// Several proxies get each line of a command, as docs/scale.md says.
	folder := t.TempDir()
	proxy := "echo \"$line\" | socat - UNIX-CONNECT:" + m.directory + "/admin.sock\n"
	writeProgram(t, folder, "to-all", "read -r line\n"+proxy+proxy)
	cmd := m.command(t, 1, "")
	cmd.Env = append(cmd.Env, "HAPROXY=EXEC:"+folder+"/to-all")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	m.Storage = m.groups[1]
	if loans := m.countOpenLoans(t, id); loans != lent {
		t.Errorf("the patron has %d loans in the new cluster, want %d", loans, lent)
	}
	readObject(t, m.lendBook(t, 0, m.addBooks(t, 1)[0], patron), http.StatusCreated)
}
