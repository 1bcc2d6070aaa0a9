package integration_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"checkoutlock/integration-tests/stack"
)

// plan is how PostgreSQL ran a statement, also one of a trigger.
type plan struct {
	Statement string   `json:"Query Text"`
	Root      planNode `json:"Plan"`
}

type planNode struct {
	Kind    string     `json:"Node Type"`
	Table   string     `json:"Relation Name"`
	Index   string     `json:"Index Name"`
	Key     string     `json:"Index Cond"`
	Rows    float64    `json:"Actual Rows"`
	Removed float64    `json:"Rows Removed by Filter"`
	Inner   []planNode `json:"Plans"`
}

// listScans returns the nodes that read a part of a relation that its size decides.
func (n planNode) listScans(large map[string]bool) (scans []planNode) {
	whole := n.Kind == "Seq Scan" || strings.Contains(n.Kind, "Index") && n.Key == ""
	if (large[n.Table] || large[n.Index]) && (whole || n.Rows+n.Removed > 100) {
		scans = append(scans, n)
	}
	for _, inner := range n.Inner {
		scans = append(scans, inner.listScans(large)...)
	}
	return scans
}

// noteTables adds the tables that the node and those below it scan.
func (n planNode) noteTables(scanned map[string]bool) {
	if strings.HasSuffix(n.Kind, "Scan") {
		scanned[n.Table] = true
	}
	for _, inner := range n.Inner {
		inner.noteTables(scanned)
	}
}

// explainer is a proxy in front of PostgreSQL that reads the plans which auto_explain sends to
// the client.
type explainer struct {
	listener net.Listener
	server   string
	copies   sync.WaitGroup

	mu    sync.Mutex
	plans []plan
	err   error
}

// newExplainer makes sessions of the database explain their statements, and returns its address
// through the proxy. It skips the test if the server cannot explain.
func newExplainer(t *testing.T, databaseURL string) (*explainer, url.URL) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), "LOAD 'auto_explain'")
	if err := errors.Join(err, conn.Close(t.Context())); err != nil {
		t.Skipf("the server has no auto_explain, or its user may not load it: %v", err)
	}
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"session_preload_libraries":     "auto_explain",
		"auto_explain.log_min_duration": "0", "auto_explain.log_level": "notice",
		"auto_explain.log_format": "json", "auto_explain.log_nested_statements": "on",
		"auto_explain.log_analyze": "on", "auto_explain.log_timing": "off",
	} {
		execSQL(t, databaseURL, fmt.Sprintf("ALTER DATABASE %s SET %s = '%s'", u.Path[1:], name, value))
	}
	e := &explainer{server: u.Host}
	if e.listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	e.copies.Go(e.accept)
	t.Cleanup(func() {
		_ = e.listener.Close()
		e.copies.Wait() // the services have closed their connections
	})
	u.Host = e.listener.Addr().String()
	return e, *u
}

func (e *explainer) accept() {
	for {
		client, err := e.listener.Accept()
		if err != nil {
			return // closed
		}
		server, err := net.Dial("tcp", e.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		e.copies.Go(func() {
			_, _ = io.Copy(server, client)
			_ = server.Close()
		})
		e.copies.Go(func() {
			e.readPlans(pgproto3.NewFrontend(io.TeeReader(server, client), nil))
			_ = client.Close()
		})
	}
}

// readPlans reads what the server sends until the connection ends.
func (e *explainer) readPlans(from *pgproto3.Frontend) {
	for {
		message, err := from.Receive()
		if err != nil {
			return
		}
		notice, ok := message.(*pgproto3.NoticeResponse)
		if !ok {
			continue
		}
		var p plan
		if _, text, explained := strings.Cut(notice.Message, "plan:\n"); explained {
			err = json.Unmarshal([]byte(text), &p)
		}
		e.mu.Lock()
		e.plans, e.err = append(e.plans, p), errors.Join(e.err, err)
		e.mu.Unlock()
	}
}

// takePlans returns the plans of what has run since the last call.
func (e *explainer) takePlans(t *testing.T) []plan {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		t.Fatal(e.err)
	}
	taken := e.plans
	e.plans = nil
	return taken
}

// The plans of PostgreSQL fit the sizes of tables when they are made. These tests make plans while
// the tables are empty, and look at those in use when the tables are large. No table is analyzed.
func TestPlans_FollowTheGrowthOfTables(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		mode     string // a parameter of the database's address
		vacuumed bool   // which makes PostgreSQL certain that the tables are empty
		titles   bool   // requests for titles count, so the queues are those of titles
	}{
		"new tables":                      {titles: true},
		"empty tables that were vacuumed": {vacuumed: true},
		"empty tables in exec mode":       {mode: "&default_query_exec_mode=exec", vacuumed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := createDatabase(t)
			e, through := newExplainer(t, database)
			through.RawQuery = "sslmode=disable" + tt.mode
			p := startPair(t, stack.Options{DatabaseURL: through.String(), CirculationEnv: enableLock(), StorageEnv: []string{
				"DATABASE_MAX_CONNS=2", // one for lending and one for the rest, so that all visits use the same plans
				"LOCK_SWEEP_INTERVAL=24h", "MIGRATE_DATABASE_URL=" + database,
			}}, 9)
			p.storeLockEnabled(t)
			if tt.titles {
				p.addRecord(t, "/circulation-settings-storage/circulation-settings", record{
					"name": "generalTlr", "value": record{"titleLevelRequestsFeatureEnabled": true},
				})
			}
			if tt.vacuumed {
				execSQL(t, database, "VACUUM ANALYZE")
			}
			for range 8 { // PostgreSQL keeps a plan from the sixth time on
				p.visitDesk(t)
			}
			large := p.growTables(t, database)
			for range 10 {
				p.visitDesk(t)
			}
			e.takePlans(t)
			p.visitDesk(t)
			bad, scanned := map[string]bool{}, map[string]bool{}
			for _, plan := range e.takePlans(t) {
				plan.Root.noteTables(scanned)
				for _, n := range plan.Root.listScans(large) {
					statement := strings.Join(strings.Fields(plan.Statement), " ")
					bad[fmt.Sprintf("%s %s %s %s in %.300s", n.Kind, n.Table, n.Index, n.Key, statement)] = true
				}
			}
			for _, text := range slices.Sorted(maps.Keys(bad)) {
				t.Error(text)
			}
			for _, table := range []string{"loan", "item", "request", "check_out_lock"} {
				if !large[table] || !scanned[table] {
					t.Errorf("%s is large: %t, and a plan scans it: %t; want both", table, large[table], scanned[table])
				}
			}
		})
	}
}

// With the lock off, a check-out inserts rows into the tables of loans and sessions alone.
func TestPlans_FollowTheGrowthOfLoans(t *testing.T) {
	t.Parallel()
	const before, after = 8, 16 // check-outs
	database := createDatabase(t)
	e, through := newExplainer(t, database)
	p := startPair(t, stack.Options{DatabaseURL: through.String(), StorageEnv: []string{
		"DATABASE_MAX_CONNS=2", "LOCK_SWEEP_INTERVAL=24h", "MIGRATE_DATABASE_URL=" + database,
	}}, before+after+1)
	_, card := p.addPatron(t)
	books := p.addBooks(t, before+after+1)
	execSQL(t, database, "VACUUM ANALYZE")
	var large map[string]bool
	for i, book := range books {
		switch i {
		case before:
			large = p.growTables(t, database)
		case before + after:
			e.takePlans(t)
		}
		readObject(t, p.lendBook(t, 0, book, card), http.StatusCreated)
	}
	for _, plan := range e.takePlans(t) {
		for _, n := range plan.Root.listScans(large) {
			if n.Table == "loan" {
				t.Errorf("%s %s %s in %.300s", n.Kind, n.Index, n.Key, strings.Join(strings.Fields(plan.Statement), " "))
			}
		}
	}
	if !large["loan"] {
		t.Error("the table of loans is not large")
	}
}

// visitDesk makes patrons and a book, and does everything with them that a desk does often.
func (p *pair) visitDesk(t *testing.T) {
	t.Helper()
	ann, annCard := p.addPatron(t)
	ben, benCard := p.addPatron(t)
	id, book := p.addItem(t)
	p.addRecord(t, "/manualblocks", record{"userId": ann, "desc": "owes one book", "borrowing": false})
	p.addRecord(t, "/proxiesfor", record{"userId": ann, "proxyUserId": ben, "status": "Active"})
	readObject(t, p.lendBook(t, 0, book, annCard), http.StatusCreated)
	readObject(t, p.renewLoan(t, 0, book, annCard), http.StatusOK)
	readObject(t, p.placeRequest(t, id, ben, "Hold"), http.StatusCreated)
	readObject(t, p.checkInItem(t, book, p.ServicePointID), http.StatusOK)
	readRefusals(t, p.lendBook(t, 0, book, annCard), http.StatusUnprocessableEntity)
	readObject(t, p.lendWithKey(t, 0, uuid.NewString(), p.newCheckOut(book, benCard)), http.StatusCreated)
	readObject(t, p.checkInItem(t, book, p.ServicePointID), http.StatusOK)
	p.releaseLock(t, p.acquireLock(t, ann, outlastsTests))
}

// growTables gives each table that grows with the desk's work some thousand rows, past the services.
// It returns the names of these tables and of their indexes.
func (p *pair) growTables(t *testing.T, database string) map[string]bool {
	t.Helper()
	const rows = 3000
	schema := strings.TrimSuffix(p.tableName("x"), `."x"`)
	// Without triggers and foreign keys.
	statements := []string{"SET search_path = " + schema, "SET session_replication_role = replica"}
	for table, changes := range map[string]string{
		"users": "{}", "item": "{}", "holdings_record": "{}", "instance": "{}", "loan_history": "{}",
		"patron_action_session": "{}", "manualblocks": "{}", "proxyfor": "{}",
		"loan":    `{"status": {"name": "Open"}}`,
		"request": `{"status": "Open - Not yet filled", "position": 1}`,
	} {
		statements = append(statements, fmt.Sprintf(`
			INSERT INTO %[1]s (id, jsonb)
			SELECT id, regexp_replace(jsonb::text, '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', id::text, 'g')::jsonb || '%[2]s'
			  FROM (SELECT gen_random_uuid() AS id, jsonb
			          FROM (SELECT jsonb FROM %[1]s LIMIT 1) AS one, generate_series(1,
			          %[3]d)) AS copies`, table, changes, rows))
	}
	for _, insert := range []string{
		"automated_patron_blocks (user_id, jsonb) SELECT gen_random_uuid(), '{}'",
		"check_in (id, item_id, item) SELECT gen_random_uuid(), gen_random_uuid(), repeat('x', 500)",
		"check_out_request (key, body_hash, claim_id, lease_ms) " +
			"SELECT gen_random_uuid(), decode(repeat('00', 32), 'hex'), gen_random_uuid(), 1000",
		"check_out_lock (id, user_id, creation_date, ttl_ms) SELECT gen_random_uuid(), gen_random_uuid(), now(), 1000000",
	} {
		statements = append(statements, fmt.Sprintf("INSERT INTO %s FROM generate_series(1, %d)", insert, rows))
	}
	execSQL(t, database, statements...)
	var names []string
	queryValue(t, database, &names, `
		WITH large AS (SELECT oid FROM pg_class
		                WHERE relnamespace = $1::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 20 * 8192)
		SELECT array_agg(relname::text) FROM pg_class WHERE oid IN (
		       SELECT oid FROM large UNION ALL SELECT indexrelid FROM pg_index JOIN large ON oid = indrelid)`, schema)
	large := map[string]bool{}
	for _, name := range names {
		large[name] = true
	}
	return large
}
