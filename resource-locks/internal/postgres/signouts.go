package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// SignOutStore keeps which sessions of staff ended by a sign-out.
type SignOutStore struct{ db *DB }

// NewSignOutStore returns the sign-outs in db.
func NewSignOutStore(db *DB) *SignOutStore { return &SignOutStore{db} }

// signOutSQL deletes the rows that nothing needs any more, too.
const signOutSQL = `
WITH forgotten AS (DELETE FROM {schema}.staff_sign_out WHERE keep_until < clock_timestamp() AND session <> $1::uuid)
INSERT INTO {schema}.staff_sign_out (session, keep_until) VALUES ($1::uuid, $2::timestamptz) ON CONFLICT DO NOTHING`

// SignOut implements auth.SignOuts.
func (s *SignOutStore) SignOut(ctx context.Context, session uuid.UUID, until time.Time) error {
	_, err := s.db.exec(ctx, s.db.ordinary, "signing out", bounds, signOutSQL, session, until)
	return err
}

const isSignedOutSQL = `SELECT true FROM {schema}.staff_sign_out WHERE session = $1::uuid`

// IsSignedOut implements auth.SignOuts.
func (s *SignOutStore) IsSignedOut(ctx context.Context, session uuid.UUID) (bool, error) {
	found, err := readRows(ctx, s.db, s.db.ordinary, "reading a sign-out", isSignedOutSQL, []any{session}, pgx.RowTo[bool])
	return len(found) > 0, err
}
