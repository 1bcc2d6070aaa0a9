package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"checkoutlock/schemas/fault"
)

// PatronBlockStore keeps each tenant's automated patron blocks.
type PatronBlockStore struct{ db *DB }

// NewPatronBlockStore returns the automated blocks of all tenants in db.
func NewPatronBlockStore(db *DB) *PatronBlockStore { return &PatronBlockStore{db: db} }

const (
	patronBlocksSQL    = `SELECT jsonb FROM {schema}.automated_patron_blocks WHERE user_id = $1::uuid`
	setPatronBlocksSQL = `
INSERT INTO {schema}.automated_patron_blocks (user_id, jsonb) VALUES ($1::uuid, $2::jsonb)
ON CONFLICT ON CONSTRAINT automated_patron_blocks_pkey DO UPDATE SET jsonb = excluded.jsonb`
)

// PatronBlocks returns what was stored for a patron. Fault: NotFound.
func (s *PatronBlockStore) PatronBlocks(ctx context.Context, userID string) (json.RawMessage, error) {
	statement, err := query(ctx, patronBlocksSQL)
	if err != nil {
		return nil, err
	}
	var doc json.RawMessage
	err = s.db.read(ctx, func() error { return s.db.pool.QueryRow(ctx, statement, userID).Scan(&doc) })
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fault.New(fault.NotFound, "Not found: no automated blocks are stored for the patron")
	}
	return doc, toFault("reading automated patron blocks", err)
}

// SetPatronBlocks stores doc for a patron, in place of what there was.
func (s *PatronBlockStore) SetPatronBlocks(ctx context.Context, userID string, doc json.RawMessage) error {
	statement, err := query(ctx, setPatronBlocksSQL)
	if err != nil {
		return err
	}
	_, err = s.db.pool.Exec(ctx, statement, userID, string(doc))
	return toFault("writing automated patron blocks", err)
}
