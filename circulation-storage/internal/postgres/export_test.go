package postgres

import (
	"context"
	"errors"
	"io/fs"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/history"
	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/database"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

// Statements for EXPLAIN.

// ExpiredQueuesSQL finds expired requests.
const ExpiredQueuesSQL = expiredQueuesSQL

// ExpiredSessionsSQL finds sessions that a desk left open.
const ExpiredSessionsSQL = expiredSessionsSQL

// SweepRepeatsSQL sweeps one of the tables.
func SweepRepeatsSQL(table string) string { return nameTable(sweepRepeatsSQL, table) }

// NextEventsSQL reads the events that wait, within NextEventsBounds.
var (
	NextEventsSQL    = nextEventsSQL
	NextEventsBounds = nextEventsBounds
)

// LockCheckOutSQL is what separates commits and settlements of one loan.
const LockCheckOutSQL = lockCheckOutSQL

// The sweeps of what is old.
const (
	SweepLoanHistorySQL = sweepLoanHistorySQL
	SweepKeysSQL        = sweepKeysSQL
)

// CheckOutLoanSQL is the last read of a check-out, with the recount.
const CheckOutLoanSQL = checkOutLoanSQL

// ListStatement returns the statement of RecordStore.List.
func ListStatement(ctx context.Context, t records.Type, p records.Page) (string, []any, error) {
	q, err := writeListQuery(t, p)
	if err != nil {
		return "", nil, err
	}
	statement, err := nameSchema(ctx, nil, q.page)
	return statement, q.args, err
}

// HistoryStatement returns the statement of HistoryStore.List.
func HistoryStatement(ctx context.Context, f history.Filter) (string, []any, error) {
	statement, args := listHistory(f)
	statement, err := nameSchema(ctx, nil, statement)
	return statement, args, err
}

// HistoryAddStatement returns the statement of HistoryStore.Add.
func HistoryAddStatement(ctx context.Context) (string, error) {
	return nameSchema(ctx, nil, addHistorySQL)
}

// FiguresStatement returns the statement of HistoryStore.Figures.
func FiguresStatement(ctx context.Context) (string, error) { return nameSchema(ctx, nil, figuresSQL) }

// HistorySweepStatement returns the statement of HistoryStore.Sweep.
func HistorySweepStatement(ctx context.Context) (string, error) {
	return nameSchema(ctx, nil, sweepHistorySQL)
}

// GiveRows gives the rows of a list's statement to out.
func GiveRows(ctx context.Context, rows pgx.Rows, out records.Sink) error {
	l := &listing{out: out, long: make(chan struct{}, 1)}
	defer l.freePlace()
	return l.readRows(ctx, func(context.Context) pgx.Rows { return rows })
}

// InTx runs fn as the commits do.
func (db *DB) InTx(ctx context.Context, op string, fn func(pgx.Tx) error) error {
	return db.inTx(ctx, op, fn)
}

// AllowReset lets the next lost connection reset the pools, however soon.
func (db *DB) AllowReset() { db.conns.AllowReset() }

// UseMigrations replaces the migration files, which stand in a folder sql.
func (db *DB) UseMigrations(files fs.FS) { db.migrations = files }

// ToFault is the last translation of PostgreSQL's errors.
var ToFault = toFault

// TenantOfSchema is tenantOfSchema.
var TenantOfSchema = tenantOfSchema

// The statements that read the lock settings, for EXPLAIN.
const (
	SettingsStateSQL = settingsStateSQL
	LockVersionSQL   = lockVersionSQL
)

// The statements of groups, for EXPLAIN.
var (
	GroupSettingsSQL = groupSettingsSQL
	DeleteLocksSQL   = deleteLocksSQL
	PeekLocksSQL     = peekLocksSQL
)

// CallsWaiting returns how many acquires and releases wait for the tenant's next group, -1
// while none is under way.
func (s *LockStore) CallsWaiting(tenant okapi.Tenant) (acquires, releases int) {
	return s.acquires.Waiting(tenant), s.releases.Waiting(tenant)
}

// PeeksWaiting is CallsWaiting for reads.
func (s *LockStore) PeeksWaiting(tenant okapi.Tenant) int { return s.peeks.Waiting(tenant) }

// TenantsInGroups returns how many tenants the groups know.
func (s *LockStore) TenantsInGroups() int {
	return s.acquires.Keys() + s.releases.Keys() + s.peeks.Keys()
}

// AcquireGroup sends acquires as one group and returns the error of its statement.
func (s *LockStore) AcquireGroup(ctx context.Context, requests []lock.Request) error {
	_, err := sendGroup(ctx, s.acquires, requests)
	return err
}

// ReleaseGroup sends releases as one group and returns the error of its statement.
func (s *LockStore) ReleaseGroup(ctx context.Context, ids []uuid.UUID) error {
	_, err := sendGroup(ctx, s.releases, ids)
	return err
}

// ObservedBy is the same store with another observer.
func (s CommitStore) ObservedBy(obs commit.Observer) *CommitStore {
	s.obs = obs
	return &s
}

// ReadFactsInGroup sends reads of facts as one group and returns their answers.
func (s *CommitStore) ReadFactsInGroup(ctx context.Context, asked []schemas.CheckOutSubjects) ([]schemas.CheckOutFacts,
	error,
) {
	group, err := sendGroup(ctx, s.facts, asked)
	if err != nil {
		return nil, err
	}
	all := make([]schemas.CheckOutFacts, len(group))
	for i, m := range group {
		if m.Err == nil {
			all[i], m.Err = m.Answer.complete()
		}
		err = errors.Join(err, m.Err)
	}
	return all, err
}

func sendGroup[Q, A any](ctx context.Context, g *groups[Q, A], asked []Q) ([]*member[Q, A], error) {
	group := make([]*member[Q, A], len(asked))
	for i, q := range asked {
		group[i] = database.NewMember[Q, A](q)
	}
	conn, err := g.Pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	return group, g.Send(ctx, conn, group)
}

// The statements that read the facts of check-outs, for EXPLAIN. CheckInFactsSQL contains that of one.
var (
	SeveralFactsSQL        = severalFactsSQL
	SeveralBarcodeFactsSQL = severalBarcodeFactsSQL
)

const (
	CheckInFactsSQL = checkInFactsSQL
	BarcodeFactsSQL = barcodeFactsSQL
)
