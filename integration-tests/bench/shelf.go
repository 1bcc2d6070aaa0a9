package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/integration-tests/stack"
)

// shelf is a library whose items and patrons are made by the thousand with SQL.
type shelf struct {
	*stack.Library
	pool   *pgxpool.Pool
	schema string
	made   int          // items and patrons so far, for their barcodes
	lent   atomic.Int64 // of those, by a house
}

// newShelf makes a library whose patrons may have as many items as the limit says.
func newShelf(ctx context.Context, storageURL, databaseURL string, limit int) (*shelf, error) {
	pool, err := pgxpool.New(ctx, databaseURL)
	if err != nil {
		return nil, err
	}
	s, err := newShelfOf(ctx, tenant, storageURL, pool, limit)
	if err != nil {
		pool.Close()
	}
	return s, err
}

// newShelfOf is newShelf for a tenant of that name.
func newShelfOf(ctx context.Context, name, storageURL string, pool *pgxpool.Pool, limit int) (*shelf, error) {
	library, err := stack.NewLibrary(ctx, stack.Client{Base: storageURL, Tenant: name}, limit)
	if err != nil {
		return nil, err
	}
	return &shelf{Library: library, pool: pool, schema: pgx.Identifier{name + "_mod_circulation_storage"}.Sanitize()}, nil
}

const itemsSQL = `
INSERT INTO %s.item (id, jsonb)
SELECT id, jsonb_build_object('id', id, '_version', 1, 'barcode', 'i' || n, 'holdingsRecordId', $3::text, 'materialTypeId', $4::text,
	'permanentLoanTypeId', $5::text, 'effectiveLocationId', $6::text, 'status', jsonb_build_object('name', 'Available'))
  FROM (SELECT gen_random_uuid() AS id, n FROM generate_series($1::int, $2::int) AS n) AS new`

const patronsSQL = `
INSERT INTO %s.users (id, jsonb)
SELECT id, jsonb_build_object('id', id, 'username', 'p' || n, 'barcode', 'p' || n, 'active', true, 'patronGroup', $3::text,
	'personal', jsonb_build_object('lastName', 'Reader', 'firstName', 'p' || n))
  FROM (SELECT gen_random_uuid() AS id, n FROM generate_series($1::int, $2::int) AS n) AS new`

// addCopies adds n items and as many patrons and returns the number in the first
// barcode: items are i<number>, patrons p<number>.
func (s *shelf) addCopies(ctx context.Context, n int) (first int, err error) {
	first = s.made + 1
	s.made += n
	if _, err := s.pool.Exec(ctx, fmt.Sprintf(itemsSQL, s.schema), first, s.made, s.HoldingsID, s.MaterialTypeID, s.LoanTypeID, s.LocationID); err != nil {
		return 0, err
	}
	if _, err = s.pool.Exec(ctx, fmt.Sprintf(patronsSQL, s.schema), first, s.made, s.GroupID); err != nil {
		return 0, err
	}
	_, err = s.pool.Exec(ctx, fmt.Sprintf("ANALYZE %[1]s.item, %[1]s.users, %[1]s.loan", s.schema))
	return first, err
}

// Loans of patrons and items that exist nowhere else: one of ten is open, as in a library
// that keeps its closed loans for some years.
const loansSQL = `
INSERT INTO %s.loan (id, jsonb)
SELECT id, jsonb_build_object('id', id, '_version', 1, 'userId', md5('patron' || n %% 20000)::uuid, 'itemId', gen_random_uuid(),
	'itemEffectiveLocationIdAtCheckOut', $3::text, 'loanPolicyId', $4::text, 'action', CASE WHEN n %% 10 = 0 THEN 'checkedout' ELSE 'checkedin' END,
	'status', jsonb_build_object('name', CASE WHEN n %% 10 = 0 THEN 'Open' ELSE 'Closed' END),
	'loanDate', to_char(timestamptz '2020-01-01 00:00:00+00' + n * interval '1 minute', 'YYYY-MM-DD"T"HH24:MI:SS.MS+00:00'),
	'dueDate', to_char(timestamptz '2020-01-29 00:00:00+00' + n * interval '1 minute', 'YYYY-MM-DD"T"HH24:MI:SS.MS+00:00'))
  FROM (SELECT gen_random_uuid() AS id, n FROM generate_series($1::int, $2::int) AS n) AS new`

// addLoans raises the number of stored loans from have to want.
func (s *shelf) addLoans(ctx context.Context, have, want int) error {
	for first := have + 1; first <= want; first += 100_000 {
		last := min(want, first+99_999)
		if _, err := s.pool.Exec(ctx, fmt.Sprintf(loansSQL, s.schema), first, last, s.LocationID, s.PolicyID); err != nil {
			return err
		}
	}
	_, err := s.pool.Exec(ctx, fmt.Sprintf("VACUUM ANALYZE %s.loan", s.schema))
	return err
}

const openLoansSQL = `
WITH lent AS (
	UPDATE %[1]s.item SET jsonb = jsonb_set(jsonb, '{status,name}', '"Checked out"')
	 WHERE lower(jsonb->>'barcode') IN (SELECT 'i' || n FROM generate_series($2::int, $3::int) AS n) RETURNING id)
INSERT INTO %[1]s.loan (id, jsonb)
SELECT loan_id, jsonb_build_object('id', loan_id, '_version', 1, 'userId', $1::text, 'itemId', id, 'loanPolicyId', $4::text, 'action', 'checkedout',
	'status', jsonb_build_object('name', 'Open'), 'loanDate', '2026-01-01T00:00:00.000+00:00', 'dueDate', '2030-01-01T00:00:00.000+00:00')
  FROM (SELECT id, gen_random_uuid() AS loan_id FROM lent) AS new`

// lendToPatron gives a patron the n items from that number on.
func (s *shelf) lendToPatron(ctx context.Context, userID string, first, n int) error {
	_, err := s.pool.Exec(ctx, fmt.Sprintf(openLoansSQL, s.schema), userID, first, first+n-1, s.PolicyID)
	return err
}
