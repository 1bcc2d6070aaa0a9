package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	"checkoutlock/integration-tests/stack"
)

// plainCheckOuts is the least service that lends: one process, which writes the rows of the pair
// without any of its promises. It reads the items and patrons of a tenant, and judges nothing.
type plainCheckOuts struct {
	pool   *pgxpool.Pool
	schema string
}

// plainLoanTables have the rows of a check-out, and no index that lending does not need.
const plainLoanTables = plainTable + `;
CREATE TABLE IF NOT EXISTS plain_loan (id uuid PRIMARY KEY, user_id uuid NOT NULL, item_id uuid NOT NULL, jsonb jsonb NOT NULL);
CREATE INDEX IF NOT EXISTS plain_loan_user_id_idx ON plain_loan (user_id);
CREATE UNIQUE INDEX IF NOT EXISTS plain_loan_item_id_key ON plain_loan (item_id);
CREATE TABLE IF NOT EXISTS plain_loan_history (id uuid PRIMARY KEY, jsonb jsonb NOT NULL);
CREATE TABLE IF NOT EXISTS plain_session (id uuid PRIMARY KEY, jsonb jsonb NOT NULL);
CREATE TABLE IF NOT EXISTS plain_outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload jsonb NOT NULL)`

const plainFactsSQL = `
SELECT i.id, i.jsonb, i.jsonb->>'effectiveLocationId', u.id, u.jsonb->>'patronGroup', (SELECT count(*) FROM plain_loan WHERE user_id = u.id)
  FROM %[1]s.item AS i, %[1]s.users AS u
 WHERE lower(i.jsonb->>'barcode') = lower($1) AND lower(u.jsonb->>'barcode') = lower($2)`

// newPlainCheckOuts serves the items and patrons in schema, which is quoted.
func newPlainCheckOuts(ctx context.Context, databaseURL, schema string) (http.Handler, error) {
	pool, err := openPool(ctx, databaseURL, 32, "on", plainLoanTables)
	if err != nil {
		return nil, err
	}
	e := echo.New()
	p := plainCheckOuts{pool, schema}
	e.GET("/", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	e.POST("/circulation/check-out-by-barcode", p.checkOut)
	return e, nil
}

// plainFacts is what a check-out is made of.
type plainFacts struct {
	itemID, userID      uuid.UUID
	item                map[string]any
	locationID, groupID string
	loans               int
}

func (p plainCheckOuts) checkOut(c echo.Context) error {
	var body stack.CheckOut
	if err := json.NewDecoder(c.Request().Body).Decode(&body); err != nil {
		return echo.NewHTTPError(http.StatusBadRequest, err.Error())
	}
	ctx := c.Request().Context()
	var f plainFacts
	err := p.pool.QueryRow(ctx, fmt.Sprintf(plainFactsSQL, p.schema), body.ItemBarcode, body.UserBarcode).
		Scan(&f.itemID, &f.item, &f.locationID, &f.userID, &f.groupID, &f.loans)
	if err != nil {
		return err
	}
	var lockID uuid.UUID
	err = p.pool.QueryRow(ctx, `INSERT INTO plain_lock (user_id) VALUES ($1) RETURNING id`, f.userID).Scan(&lockID)
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == "23505" {
		return echo.NewHTTPError(http.StatusServiceUnavailable, "held")
	}
	if err != nil {
		return err
	}
	loan := f.makeLoan(body.ServicePointID)
	if err := p.write(ctx, lockID, f, loan); err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, loan)
}

// makeLoan returns a loan with the fields that the pair stores.
func (f plainFacts) makeLoan(servicePointID string) map[string]any {
	now := time.Now().UTC()
	written := now.Format(time.RFC3339Nano)
	return map[string]any{
		"id": uuid.NewString(), "isDcb": false, "action": "checkedout", "userId": f.userID, "itemId": f.itemID,
		"status": map[string]any{"name": "Open"}, "loanDate": written, "dueDate": now.AddDate(0, 0, 28).Format(time.RFC3339Nano),
		"loanPolicyId": uuid.NewString(), "overdueFinePolicyId": uuid.NewString(), "lostItemPolicyId": uuid.NewString(),
		"checkoutServicePointId": servicePointID, "patronGroupIdAtCheckout": f.groupID,
		"itemEffectiveLocationIdAtCheckOut": f.locationID, "itemStatus": "Checked out",
		"metadata": map[string]any{"createdDate": written, "updatedDate": written},
	}
}

// write sends the transaction in one round trip.
func (p plainCheckOuts) write(ctx context.Context, lockID uuid.UUID, f plainFacts, loan map[string]any) error {
	f.item["status"] = map[string]any{"name": "Checked out", "date": loan["loanDate"]}
	sessionID := uuid.New()
	var b pgx.Batch
	b.Queue("BEGIN")
	b.Queue(`INSERT INTO plain_loan (id, user_id, item_id, jsonb) VALUES ($1, $2, $3, $4)`, loan["id"], f.userID, f.itemID, loan)
	b.Queue(`INSERT INTO plain_loan_history (id, jsonb) VALUES ($1, $2)`, uuid.New(), map[string]any{"operation": "I", "loan": loan, "createdDate": loan["loanDate"]})
	b.Queue(strings.ReplaceAll(`UPDATE {schema}.item SET jsonb = $2 WHERE id = $1`, "{schema}", p.schema), f.itemID, f.item)
	b.Queue(`INSERT INTO plain_session (id, jsonb) VALUES ($1, $2)`, sessionID, map[string]any{
		"id": sessionID, "patronId": f.userID, "loanId": loan["id"], "actionType": "Check-out", "metadata": loan["metadata"],
	})
	b.Queue(`INSERT INTO plain_outbox (payload) VALUES ($1)`, map[string]any{"type": "ITEM_CHECKED_OUT", "loan": loan["id"], "user": f.userID})
	b.Queue(`DELETE FROM plain_lock WHERE id = $1`, lockID)
	b.Queue("COMMIT")
	return p.pool.SendBatch(ctx, &b).Close()
}
