package postgres

import (
	"context"

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

// Settings for a group's transaction.
//
//   - The wait for a row is short, because the other members wait too. It is shorter than
//     any deadlock_timeout in use.
//   - The plan uses the index and is made once a connection, whatever the size of table
//     and group. A plan made for the almost empty table would scan it for ever.
const groupSettingsSQL = `
SELECT set_config('lock_timeout', '` + groupLockTimeout + `', true), set_config('statement_timeout', '5s', true), ` + notDurable + `,
       set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)`

const groupLockTimeout = "50ms"

// queryGroup runs one statement for a group, in one round trip and one transaction. It
// returns after the commit. scan reads the rows.
func queryGroup(ctx context.Context, conn *pgxpool.Conn, statement string, args []any, scan func(pgx.Rows) error) error {
	statement, err := nameSchema(ctx, statement)
	if err != nil {
		return err
	}
	var queue pgx.Batch
	queue.Queue(groupSettingsSQL)
	queue.Queue(statement, args...).Query(scan)
	return conn.SendBatch(ctx, &queue).Close()
}
