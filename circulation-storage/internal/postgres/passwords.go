package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"checkoutlock/schemas/fault"
)

const terminalByLoginSQL = `
SELECT jsonb, coalesce(password_hash, '') FROM {schema}.self_check_terminal WHERE lower(jsonb->>'login') = lower($1::text)`

// TerminalByLogin implements httpapi.PasswordStore.
func (s *RecordStore) TerminalByLogin(ctx context.Context, login string) (doc json.RawMessage, hash string, err error) {
	err = s.db.readRow(ctx, s.db.conns.Ordinary, "reading a terminal by its login", terminalByLoginSQL, []any{login}, &doc, &hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, "", fault.New(fault.NotFound, "Not found: there is no terminal with this login")
	}
	return doc, hash, err
}
