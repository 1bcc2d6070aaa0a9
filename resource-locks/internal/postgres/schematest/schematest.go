// Package schematest gives tests a schema of resource-locks of their own in a real PostgreSQL.
// A package of tests calls [Main] from its TestMain.
package schematest

import (
	"context"
	"encoding/hex"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/database"
	"checkoutlock/devpostgres/testserver"
	"checkoutlock/resource-locks/internal/postgres"
)

const (
	cleanupTimeout = 2 * time.Minute // for a slow disk
	// sharedConnections are enough for each of the tests that run at once.
	sharedConnections = 64
)

// pools are those that the tests of this process share, because connections of their own take longer
// than most of them.
type pools struct {
	mu           sync.Mutex
	byParameters map[string]*postgres.DB
}

// shared are the pools of this process. Tests reach them in a variable only.
var shared = pools{byParameters: map[string]*postgres.DB{}}

// Main runs the tests of a package and returns the exit code: os.Exit(schematest.Main(m)).
func Main(m *testing.M) int { return testserver.Main(m) }

// Schema is an installed schema of one test.
type Schema struct {
	Name string
	tb   testing.TB
}

// New installs a schema. When the test ends, it is dropped.
func New(tb testing.TB) *Schema {
	tb.Helper()
	id := uuid.New()
	s := &Schema{Name: "rl" + hex.EncodeToString(id[:8]), tb: tb}
	db := s.Open("")
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), cleanupTimeout)
		defer cancel()
		if _, err := db.Pool().Exec(ctx, `DROP SCHEMA `+s.Name+` CASCADE`); err != nil {
			tb.Error(err)
		}
	})
	if err := db.Migrations().Up(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return s
}

// Open returns connections to the schema. Tests share those with the same parameters, which extend
// the connection's URL, such as "&default_query_exec_mode=exec".
func (s *Schema) Open(parameters string) *postgres.DB {
	s.tb.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	db := shared.byParameters[parameters]
	if db == nil {
		// They outlive the first test, which opens them.
		log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
		db = s.open(context.WithoutCancel(s.tb.Context()), parameters, sharedConnections, log)
		testserver.AtEnd(db.Close)
		shared.byParameters[parameters] = db
	}
	return db.InSchema(s.Name)
}

// OpenAlone returns so many connections that no other test uses. They close when the test ends.
func (s *Schema) OpenAlone(size int32) *postgres.DB {
	s.tb.Helper()
	db := s.open(s.tb.Context(), "", size, slog.New(slog.NewTextHandler(s.tb.Output(), nil)))
	s.tb.Cleanup(db.Close)
	return db.InSchema(s.Name)
}

func (s *Schema) open(ctx context.Context, parameters string, size int32, log *slog.Logger) *postgres.DB {
	s.tb.Helper()
	direct := testserver.URL(s.tb)
	cfg := database.Settings{
		URL: testserver.PatientURL(s.tb) + parameters, MigrateURL: direct, MaxConns: size, StatementTimeout: 4 * time.Second,
	}
	db, err := postgres.Open(ctx, cfg, log)
	if err != nil {
		s.tb.Fatal(err)
	}
	return db
}

// Advance makes time pass: it moves all times of the schema into the past.
func (s *Schema) Advance(db *postgres.DB, d time.Duration) {
	s.tb.Helper()
	var batch pgx.Batch
	for _, statement := range []string{
		`UPDATE {schema}.lock SET granted_at = granted_at - $1::interval, renewed_at = renewed_at - $1::interval,
		        expires_at = expires_at - $1::interval, ended_at = ended_at - $1::interval, sweep_after = sweep_after - $1::interval`,
		`UPDATE {schema}.forced_release SET at = at - $1::interval`,
		`UPDATE {schema}.instance SET lease_until = lease_until - $1::interval, ended_at = ended_at - $1::interval`,
		`UPDATE {schema}.namespace SET used_at = used_at - $1::interval`,
		`UPDATE {schema}.claim SET queued_at = queued_at - $1::interval, held_at = held_at - $1::interval, ends_at = ends_at - $1::interval`,
	} {
		batch.Queue(s.NameSchema(statement), d)
	}
	if err := db.Pool().SendBatch(s.tb.Context(), &batch).Close(); err != nil {
		s.tb.Error(err)
	}
}

// NameSchema puts the schema into a statement.
func (s *Schema) NameSchema(statement string) string {
	return database.NameSchema(s.Name, statement)
}
