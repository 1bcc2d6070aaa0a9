package postgres

import (
	"context"
	"encoding/json"

	"checkoutlock/database"
	"checkoutlock/schemas/fault"
)

const terminalByLoginSQL = `
SELECT jsonb, coalesce(password_hash, '') FROM {schema}.self_check_terminal WHERE lower(jsonb->>'login') = lower($1::text)`

// TerminalByLogin implements httpapi.PasswordStore.
func (s *RecordStore) TerminalByLogin(ctx context.Context, login string) (doc json.RawMessage, hash string, err error) {
	err = s.db.readRow(ctx, s.db.conns.Ordinary, "reading a terminal by its login", terminalByLoginSQL, []any{login}, &doc, &hash)
	return doc, hash, err
}

const (
	pinSQL    = `SELECT pin_hash FROM {schema}.patron_pin WHERE user_id = $1::uuid`
	setPINSQL = `
INSERT INTO {schema}.patron_pin (user_id, pin_hash) SELECT id, $2::text FROM {schema}.users WHERE id = $1::uuid
    ON CONFLICT (user_id) DO UPDATE SET pin_hash = excluded.pin_hash`
	deletePINSQL = `DELETE FROM {schema}.patron_pin WHERE user_id = $1::uuid`
)

// PIN implements httpapi.PasswordStore.
func (s *RecordStore) PIN(ctx context.Context, userID string) (string, error) {
	var hash string
	err := s.db.readRow(ctx, s.db.conns.Ordinary, "reading a patron's PIN", pinSQL, []any{userID}, &hash)
	return hash, explainNoRow(err, nil)
}

// SetPIN implements httpapi.PasswordStore.
func (s *RecordStore) SetPIN(ctx context.Context, userID, hash string) error {
	n, err := s.db.exec(ctx, s.db.conns.Ordinary, "setting a patron's PIN", setPINSQL, userID, hash)
	if code, _ := database.SQLState(err); code == database.ForeignKeyViolation || err == nil && n == 0 {
		return fault.StorageRefusal("There is no patron with this id", fault.Param("id", userID)) // or it was deleted meanwhile
	}
	return err
}

// DeletePIN implements httpapi.PasswordStore.
func (s *RecordStore) DeletePIN(ctx context.Context, userID string) error {
	_, err := s.db.exec(ctx, s.db.conns.Ordinary, "deleting a patron's PIN", deletePINSQL, userID)
	return err
}
