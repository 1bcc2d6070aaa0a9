package integration_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"checkoutlock/integration-tests/stack"
)

// findClientPrograms returns a folder with psql and pg_dump of the server's version, because an older
// pg_dump refuses the server, and a newer one may write what the server does not know. It skips the
// test if there is none.
func findClientPrograms(t *testing.T, databaseURL string) (folder string) {
	t.Helper()
	var version int
	queryValue(t, databaseURL, &version, `SELECT current_setting('server_version_num')::int / 10000`)
	folders := append([]string{os.Getenv("PG_BIN")}, filepath.SplitList(os.Getenv("PATH"))...)
	for _, folder := range append(folders, "/usr/lib/postgresql/"+strconv.Itoa(version)+"/bin") {
		out, err := exec.CommandContext(t.Context(), filepath.Join(folder, "pg_dump"), "--version").Output()
		if err == nil && strings.HasPrefix(string(out), "pg_dump (PostgreSQL) "+strconv.Itoa(version)) {
			return folder
		}
	}
	t.Skipf("there is no pg_dump %d to test with, on Debian: apt-get install postgresql-client-%d", version, version)
	return ""
}

// runRecipe runs the commands below a heading of a document, for a tenant. The document's is diku.
func runRecipe(t *testing.T, document, heading, folder, tenant, programs string, environ ...string) {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	_, below, found := strings.Cut(string(text), "\n"+heading+"\n")
	_, below, fenced := strings.Cut(below, "```sh\n")
	commands, _, ended := strings.Cut(below, "```\n")
	if !found || !fenced || !ended {
		t.Fatalf("%s has no commands below %q", document, heading)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-euc", strings.ReplaceAll(commands, "diku", tenant))
	cmd.Dir = folder
	cmd.Env = append(append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH")), environ...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", heading, err, out)
	}
}

func TestRestore_OfOneTenant(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{DatabaseURL: createDatabase(t), CirculationEnv: enableLock()}, 3)
	programs, folder := findClientPrograms(t, p.databaseURL), t.TempDir()
	follow := func(heading string) {
		t.Helper()
		runRecipe(t, "../docs/operations.md", heading, folder, p.Storage.Tenant, programs, "DATABASE_URL="+p.databaseURL)
	}
	id, patron := p.addPatron(t)
	books := p.addBooks(t, 5)
	lend := func(book string, want int) {
		t.Helper()
		if a := p.lendBook(t, 0, book, patron); a.Status != want {
			t.Errorf("answered %d %s, want %d", a.Status, a.Body, want)
		}
	}
	lend(books[0], http.StatusCreated)
	lend(books[1], http.StatusCreated)
	follow("### Back up one tenant")
	lend(books[2], http.StatusCreated)
	lend(books[3], http.StatusUnprocessableEntity)

	execSQL(t, p.databaseURL, "DROP SCHEMA "+schemaName(p.Storage.Tenant)+" CASCADE")
	lend(books[4], http.StatusNotFound)
	follow("### Restore one tenant")
	if n := p.countOpenLoans(t, id); n != 2 {
		t.Errorf("%d loans are restored, want the 2 of the backup", n)
	}
	p.checkLoansAndItemsAgree(t)
	lend(books[1], http.StatusUnprocessableEntity)
	lend(books[2], http.StatusCreated)
	lend(books[3], http.StatusUnprocessableEntity)

	// Over a tenant that serves.
	follow("### Restore one tenant")
	lend(books[4], http.StatusCreated)
	if n := p.countOpenLoans(t, id); n != 3 {
		t.Errorf("the patron has %d loans, want the limit of 3", n)
	}
	p.checkLoansAndItemsAgree(t)
	p.checkNoLocks(t)
	checkHealth(t, p.Storages[0], http.StatusOK)
}
