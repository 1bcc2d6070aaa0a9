package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/protobuf/encoding/protowire"
)

// plainLocket is the least that renews locks durably: one statement and one commit for each
// call.
type plainLocket struct{ pool *pgxpool.Pool }

const (
	plainLocketTable = `CREATE TABLE plain_locket (
	key text PRIMARY KEY, owner text NOT NULL, expires_at timestamptz NOT NULL) WITH (fillfactor = 70)`
	plainRenewSQL  = `UPDATE plain_locket SET expires_at = clock_timestamp() + $3 * interval '1 second' WHERE key = $1 AND owner = $2`
	plainInsertSQL = `INSERT INTO plain_locket VALUES ($1, $2, clock_timestamp() + $3 * interval '1 second')`
)

func newPlainLocket(ctx context.Context, databaseURL string) (plainLocket, error) {
	pool, err := openPool(ctx, databaseURL, 32, "on", plainLocketTable)
	return plainLocket{pool}, err
}

// lock renews a lock. The first call for a key inserts it.
func (p plainLocket) lock(ctx context.Context, request []byte) error {
	args, err := decodeLockRequest(request)
	if err != nil {
		return err
	}
	renewed, err := p.pool.Exec(ctx, plainRenewSQL, args...)
	if err == nil && renewed.RowsAffected() == 0 {
		_, err = p.pool.Exec(ctx, plainInsertSQL, args...)
	}
	return err
}

// decodeLockRequest returns key, owner and seconds of a models.LockRequest.
func decodeLockRequest(request []byte) ([]any, error) {
	resource, err := findField(request, 1, protowire.ConsumeBytes)
	if err != nil {
		return nil, err
	}
	key, err := findField(resource, 1, protowire.ConsumeString)
	if err != nil {
		return nil, err
	}
	owner, err := findField(resource, 2, protowire.ConsumeString)
	if err != nil {
		return nil, err
	}
	seconds, err := findField(request, 2, protowire.ConsumeVarint)
	return []any{key, owner, seconds}, err
}

// findField returns the value of a field, which consume decodes.
func findField[T any](message []byte, wanted protowire.Number, consume func([]byte) (T, int)) (value T, err error) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return value, protowire.ParseError(n)
		}
		message = message[n:]
		if number == wanted {
			value, n = consume(message)
			return value, protowire.ParseError(n)
		}
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return value, protowire.ParseError(n)
		}
		message = message[n:]
	}
	return value, fmt.Errorf("the request has no field %d", wanted)
}
