package postgres

import (
	"strings"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/database"
	"checkoutlock/schemas/convert"
)

// This file has every locking clause of the service, which make lint checks. All
// transactions lock rows in the order of lockRows, so that no two of them wait for
// each other in a circle. Each statement sees what was committed when it began, so
// after a wait for a row the next ones see what the holder did.
const (
	// A check-out that is committed and one that is settled wait for each other by the id of the loan,
	// which has no row yet. The text keeps the key apart from those of other advisory locks.
	lockCheckOutSQL = `SELECT ` + lockCheckOut
	lockCheckOut    = `pg_advisory_xact_lock(hashtextextended('{schema}.given_up_check_out ' || $1::uuid::text, 0))`

	// A shared row lock suffices, because a takeover of the key lease waits for it.
	lockKeyLeaseSQL = `SELECT loan_id FROM {schema}.check_out_request WHERE claim_id = $1::uuid AND answer IS NULL FOR SHARE`
	// takeLockSQL is the first statement of its transaction, and lockCheckOutSQL too. It waits for a commit
	// that has taken the patron's lock, and returns nothing if the lock is held, else how long it waited, as a
	// number: the text of an interval depends on settings. The row is deleted with the writes, so it needs no
	// time to live.
	takeLockSQL = `
WITH fenced AS MATERIALIZED (SELECT ` + database.BoundsMark + ` ` + lockCheckOut + `)
INSERT INTO {schema}.check_out_lock (id, user_id, ttl_ms) SELECT $2::uuid, $3::uuid, 0 FROM fenced
ON CONFLICT DO NOTHING RETURNING user_id, extract(epoch FROM clock_timestamp() - statement_timestamp())::float8 * 1000`
	lockFenceSQL = `SELECT user_id FROM {schema}.check_out_lock WHERE id = $1::uuid FOR UPDATE`
	// Check-outs share the version, and a change of the settings waits for all of them.
	// The announcement is not locked: it begins and ends together with a new version.
	lockVersionSQL = `
SELECT v.version::text, a.on_until IS NOT NULL
  FROM {schema}.lock_settings_version v JOIN {schema}.check_out_lock_environment a USING (only_row) FOR SHARE OF v`

	// A setting that does not exist has no row to lock. So writers of all circulation settings lock a
	// table for it, by a trigger, and wait for these commits. They take no other lock that a commit
	// takes. This mode does not conflict with VACUUM and ANALYZE.
	shareTitleSettingSQL = `LOCK TABLE {schema}.title_setting_fence IN ROW SHARE MODE`
	// titleLevelSQL reads whether there are requests for titles. FOLIO's older setting counts if there is
	// no newer one.
	titleLevelSQL = `
SELECT coalesce((SELECT jsonb->'value'->'titleLevelRequestsFeatureEnabled' = 'true' FROM {schema}.circulation_settings
                  WHERE ` + isTitleSetting + ` ORDER BY lower(jsonb->>'name') LIMIT 1), false)`
	isTitleSetting = `lower(jsonb->>'name') IN ('generaltlr', 'tlr')`

	// The copies of a title may share a queue: a writer of that queue locks the instance.
	// FOR NO KEY UPDATE lets holdings that name the instance be written meanwhile.
	lockInstanceSQL       = `SELECT true FROM {schema}.instance WHERE id = $1::uuid FOR NO KEY UPDATE`
	lockInstanceOfItemSQL = `SELECT true FROM {schema}.instance WHERE id = ` + instanceOfItem + ` FOR NO KEY UPDATE`
	instanceOfItem        = `(SELECT h.instance_id FROM {schema}.item i JOIN {schema}.holdings_record h ON h.id = i.holdings_record_id WHERE i.id = $1::uuid)`

	lockItemsSQL = `SELECT jsonb::text FROM {schema}.item WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE`
	lockItemSQL  = `SELECT jsonb::text FROM {schema}.item WHERE id = $1::uuid FOR UPDATE`
	shareItemSQL = `SELECT jsonb::text FROM {schema}.item WHERE id = $1::uuid FOR SHARE`
	// The loan's item may change until the loan is locked too, so its id is compared then.
	lockItemOfLoanSQL  = `SELECT jsonb::text FROM {schema}.item WHERE id = (SELECT item_id FROM {schema}.loan WHERE id = $1::uuid) FOR UPDATE`
	shareItemOfLoanSQL = `SELECT jsonb::text FROM {schema}.item WHERE id = (SELECT item_id FROM {schema}.loan WHERE id = $1::uuid) FOR SHARE`
	lockLoanSQL        = `SELECT jsonb::text FROM {schema}.loan WHERE id = $1::uuid FOR UPDATE`
	lockOpenLoanSQL    = `SELECT jsonb::text FROM {schema}.loan WHERE item_id = $1::uuid AND is_open FOR UPDATE`

	// Closed loans that have a patron.
	lockClosedLoansSQL       = `SELECT id, user_id FROM {schema}.loan WHERE id = ANY ($1::uuid[]) AND ` + isClosedWithPatron + ` ORDER BY id FOR UPDATE`
	lockClosedLoansOfUserSQL = `SELECT id, user_id FROM {schema}.loan WHERE user_id = $1::uuid AND ` + isClosedWithPatron + ` ORDER BY id FOR UPDATE`
	isClosedWithPatron       = `NOT is_open AND jsonb ?| ARRAY['userId', 'proxyUserId']`

	lockItemQueueSQL     = `SELECT jsonb::text FROM {schema}.request r WHERE item_id = $1::uuid AND ` + isWaiting + ` ORDER BY id FOR UPDATE`
	lockItemQueuesSQL    = `SELECT jsonb::text FROM {schema}.request r WHERE item_id = ANY ($1::uuid[]) AND ` + isWaiting + ` ORDER BY id FOR UPDATE`
	lockInstanceQueueSQL = `SELECT jsonb::text FROM {schema}.request WHERE instance_id = $1::uuid AND is_open ORDER BY id FOR UPDATE`
	// lockTitleQueueSQL adds to the queue of a title what waits for its item $1 since that was another
	// title's. It reads by the indexes of both, and judges what it has waited for again.
	lockTitleQueueSQL = `
SELECT jsonb::text FROM {schema}.request
 WHERE id = ANY (ARRAY(
       SELECT id FROM {schema}.request WHERE instance_id = {instance} AND is_open
        UNION SELECT r.id FROM {schema}.request r WHERE r.item_id = $1::uuid AND ` + isWaiting + `))
   AND is_open AND (instance_id = {instance} OR item_id = $1::uuid AND ` + isOfItem + `)
 ORDER BY id FOR UPDATE`
	isOfItem = `jsonb->>'requestLevel' IS DISTINCT FROM 'Title'`

	// shareLoanSQL is for a loan that is only read. The row lock is WAL of its own. So the
	// COMMIT waits until that and all earlier WAL, the loan's too, is on disk and on the
	// synchronous standby.
	shareLoanSQL = `SELECT jsonb::text FROM {schema}.loan WHERE id = $1::uuid FOR SHARE`
)

var (
	lockInstanceQueueOfItemSQL = strings.ReplaceAll(lockTitleQueueSQL, "{instance}", instanceOfItem)
	lockJoinedQueueSQL         = strings.ReplaceAll(lockTitleQueueSQL, "{instance}", "$2::uuid")
)

// The locks of single records, which writes of records take: the holdings record before its items,
// service points before the request policies that allow them, and several rows of one table by id.
const (
	shareRecordSQL         = `SELECT jsonb FROM {table} WHERE id = $1::uuid FOR SHARE`
	lockNamedSQL           = `SELECT jsonb FROM {table} WHERE lower(jsonb->>'name') = lower($1::text) FOR NO KEY UPDATE`
	lockRecordSQL          = `SELECT jsonb FROM {table} WHERE id = $1::uuid FOR NO KEY UPDATE`
	lockRequestsSQL        = `SELECT jsonb FROM {schema}.request WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE`
	lockItemsOfHoldingsSQL = `SELECT jsonb FROM {schema}.item WHERE holdings_record_id = $1::uuid ORDER BY id FOR NO KEY UPDATE`
	// A transaction that changes settings locks the version first, see lockSettingsTable.
	lockSettingsEntrySQL = `SELECT e.jsonb::text FROM {schema}.settings_entry e WHERE ` + isLockSettings + ` FOR UPDATE`
)

// skipLocked ends the query of a sweep, which passes over rows that others use.
const skipLocked = ` FOR UPDATE SKIP LOCKED`

// rowLocks says which rows a commit locks. Zero fields lock nothing.
type rowLocks struct {
	checkOutID      uuid.UUID // the loan's id, fences a check-out that may be given up
	keyLeaseID      uuid.UUID // fences a check-out with an Idempotency-Key
	lockID          uuid.UUID // fences a check-out with a lock
	takeFor         uuid.UUID // the patron whose lock the commit takes itself, as lockID
	takeWaitMs      *float64  // gets how long that waited for the commit that had it before
	settingsVersion bool      // fences a check-out that names a version of the settings
	titleSetting    bool      // fences a commit that judged a queue by the setting for titles

	instanceID uuid.UUID // the instance, where it is known
	itemID     uuid.UUID
	itemIDs    []uuid.UUID // several items of the instance; their requests are the queue
	itemOfLoan bool        // the item of the loan loanID
	shareItem  bool        // the commit leaves the item as it is
	loanID     uuid.UUID
	openLoan   bool // the item's open loan
	queue      bool // the open requests of the item
	titleLevel bool // those of its instance instead
	joins      bool // the item's requests of other instances too, for a request that gets a position
}

// lockRows adds the statements that lock rows and read them into seen, in the order of all transactions:
// fences (loan's id, key lease, lock, version of the settings, setting for titles), instance, item, loan, queue.
//
//   - The fences come first. Acquires, releases and takeovers of key leases lock one fence and
//     no other row, so a commit that waits for one is in no circle. A lock that the commit takes comes
//     before the key lease, which commits share.
//   - The item guards its loan and its requests. So a commit may lock one more loan
//     after the queue, as check-outs do.
//   - The instance comes before the item, since one queue serves many items.
func (b *batch) lockRows(l rowLocks, seen *commit.Seen) {
	switch {
	case l.takeFor != uuid.Nil:
		b.query(takeLockSQL, []any{l.checkOutID, l.lockID, l.takeFor}, &seen.LockUser, l.takeWaitMs)
	case l.checkOutID != uuid.Nil:
		b.query(lockCheckOutSQL, []any{l.checkOutID})
	}
	if l.keyLeaseID != uuid.Nil {
		b.query(lockKeyLeaseSQL, []any{l.keyLeaseID}, &seen.LeasedLoan)
	}
	if l.lockID != uuid.Nil && l.takeFor == uuid.Nil {
		b.query(lockFenceSQL, []any{l.lockID}, &seen.LockUser)
	}
	if l.settingsVersion {
		b.query(lockVersionSQL, nil, &seen.SettingsVersion, &seen.EnvironmentOn)
	}
	if l.titleSetting {
		b.query(shareTitleSettingSQL, nil)
		b.query(titleLevelSQL, nil, &seen.TitlesOn)
	}

	switch {
	case l.instanceID != uuid.Nil:
		b.query(lockInstanceSQL, []any{l.instanceID}, &seen.Instance)
	case l.titleLevel:
		b.query(lockInstanceOfItemSQL, []any{l.itemID}, &seen.Instance)
	}

	switch {
	case len(l.itemIDs) > 0:
		b.queryAll(lockItemsSQL, []any{formatIDs(l.itemIDs)}, &seen.Items)
	case l.itemOfLoan && l.shareItem:
		b.query(shareItemOfLoanSQL, []any{l.loanID}, (*stored)(&seen.Item))
	case l.itemOfLoan:
		b.query(lockItemOfLoanSQL, []any{l.loanID}, (*stored)(&seen.Item))
	case l.itemID == uuid.Nil:
	case l.shareItem:
		b.query(shareItemSQL, []any{l.itemID}, (*stored)(&seen.Item))
	default:
		b.query(lockItemSQL, []any{l.itemID}, (*stored)(&seen.Item))
	}

	switch {
	case l.loanID != uuid.Nil:
		b.query(lockLoanSQL, []any{l.loanID}, (*stored)(&seen.Loan))
	case l.openLoan:
		b.query(lockOpenLoanSQL, []any{l.itemID}, (*stored)(&seen.Loan))
	}

	switch {
	case !l.queue:
	case l.titleLevel && l.joins:
		b.queryAll(lockJoinedQueueSQL, []any{l.itemID, l.instanceID}, (*[]records.Record)(&seen.Queue))
	case l.titleLevel && l.instanceID != uuid.Nil:
		b.queryAll(lockInstanceQueueSQL, []any{l.instanceID}, (*[]records.Record)(&seen.Queue))
	case l.titleLevel:
		b.queryAll(lockInstanceQueueOfItemSQL, []any{l.itemID}, (*[]records.Record)(&seen.Queue))
	case len(l.itemIDs) > 0:
		b.queryAll(lockItemQueuesSQL, []any{formatIDs(l.itemIDs)}, (*[]records.Record)(&seen.Queue))
	default:
		b.queryAll(lockItemQueueSQL, []any{l.itemID}, (*[]records.Record)(&seen.Queue))
	}
	if l.queue && l.titleLevel {
		joins := l.joins || l.instanceID == uuid.Nil
		b.queryAll(otherRequestsSQL, []any{l.itemID, nullable(l.instanceID), joins}, (*[]records.Record)(&seen.OtherTitles))
	}
}

// formatIDs returns ids as text, because a connection in exec mode cannot send them otherwise.
func formatIDs(ids []uuid.UUID) []string { return convert.All(ids, uuid.UUID.String) }
