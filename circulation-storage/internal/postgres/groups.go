package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/database"
	"checkoutlock/schemas/okapi"
)

// groups are the calls of one kind, by tenant. Members wait for their answers, so that they
// can give back what they got.
type (
	groups[Q, A any] = database.Groups[okapi.Tenant, Q, A]
	member[Q, A any] = database.Member[Q, A]
)

// runInGroup returns the answer to one call of ctx's tenant.
func runInGroup[Q, A any](ctx context.Context, g *groups[Q, A], asked Q) (A, error) {
	tenant, err := okapi.TenantFrom(ctx)
	if err != nil {
		var none A
		return none, errNoTenant
	}
	return g.Run(ctx, tenant, asked)
}

// groupSettingsSQL goes before the statement of a group. Its plan uses the index and is made once a
// connection: a plan made for the almost empty table would scan it for ever.
var groupSettingsSQL = database.Bounds{
	Lock: database.GroupLockTimeout, Statement: 5 * time.Second, NotDurable: true, PlansOnce: true, OnlyIndexes: true,
}.Batched()

// queryGroup runs one statement for a group, in one round trip and one transaction. It
// returns after the commit. scan reads the rows.
func queryGroup(ctx context.Context, conn *pgxpool.Conn, statement string, args []any, scan func(pgx.Rows) error) error {
	statement, err := nameSchema(ctx, conn, statement)
	if err != nil {
		return err
	}
	return database.Query(ctx, conn, groupSettingsSQL, statement, args, scan)
}
