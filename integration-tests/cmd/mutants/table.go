package main

// The folders of the mutated files and of their tests.
const (
	storageSQL  = "circulation-storage/internal/postgres/"
	commitRules = "circulation-storage/internal/commit/"
	lockLine    = "circulation-storage/internal/lock/"
	eventRules  = "circulation-storage/internal/events/"
	checkOut    = "circulation/internal/checkout/"
	admission   = "circulation/internal/admission/"
	keyed       = "circulation/internal/keyed/"
	settings    = "circulation/internal/settings/"
	staff       = "circulation/internal/staff/"
	locksSQL    = "resource-locks/internal/postgres/"
	sunbird     = "resource-locks/internal/sunbird/"
	edge        = "web/"
	auth        = "web/auth/"
)

// mutations are those of the lines that hold a promise, by subject.
var mutations = []mutation{
	{
		promise: "a held lock is not granted", file: storageSQL + "lockstore.go",
		old: "WHERE l.request_id = excluded.request_id OR ` + forRequest", new: "WHERE true OR ` + forRequest",
		tests: storageSQL, test: "TestAcquire_OneOfManyTakesAnOutdatedLockOver",
	},
	{
		promise: "an outdated lock equals none", file: storageSQL + "lockstore.go",
		old: "interval '1 ms' < clock_timestamp() - {grace}", new: "interval '1 h' < clock_timestamp() - {grace}",
		tests: storageSQL, test: "TestLockStore",
	},
	{
		promise: "a lock of the future equals none", file: storageSQL + "lockstore.go",
		old: "OR l.creation_date > clock_timestamp() + interval '5 s' + {grace})", new: "OR false)",
		tests: storageSQL, test: "TestLockStore",
	},
	{
		promise: "each grant has a new id", file: storageSQL + "lockstore.go",
		old: "THEN l.id ELSE excluded.id END", new: "THEN l.id ELSE l.id END",
		tests: storageSQL, test: "TestLockStore",
	},
	{
		promise: "a request releases its own lock only", file: storageSQL + "lockstore.go",
		old: "AND l.request_id = $2::uuid RETURNING", new: "AND $2::uuid IS NOT NULL RETURNING",
		tests: storageSQL, test: "TestLockStore",
	},
	{
		promise: "a hand-over fences the former holder", file: storageSQL + "lockwait.go",
		old: "SET id = gen_random_uuid(), creation_date", new: "SET creation_date",
		tests: storageSQL, test: "TestHandOver_FencesTheFormerHolder",
	},
	{
		promise: "an outdated lock is not handed over", file: storageSQL + "lockwait.go",
		old: "AND l.user_id = $2::uuid AND NOT ` + own + `", new: "AND l.user_id = $2::uuid`+`",
		tests: storageSQL, test: "TestLockStore",
	},
	{
		promise: "the fence locks the lock's row", file: storageSQL + "rowlocks.go",
		old: "{schema}.check_out_lock WHERE id = $1::uuid FOR UPDATE`", new: "{schema}.check_out_lock WHERE id = $1::uuid`",
		tests: storageSQL, test: "TestAcquire_TakeoverWaitsForACommit",
	},
	{
		promise: "a commit takes no held lock", file: storageSQL + "rowlocks.go",
		old: "ON CONFLICT DO NOTHING RETURNING user_id", new: "ON CONFLICT (user_id) DO UPDATE SET id = excluded.id RETURNING user_id",
		tests: storageSQL, test: "TestCheckOut_TakesNoLock",
	},
	{
		promise: "a change of the settings waits for commits", file: storageSQL + "rowlocks.go",
		old: "USING (only_row) FOR SHARE OF v`", new: "USING (only_row)`",
		tests: storageSQL, test: "TestLockSettings_SwitchingOnWaitsForCommitsWithoutALock",
	},
	{
		promise: "a takeover of a key waits for the commit", file: storageSQL + "rowlocks.go",
		old: "AND answer IS NULL FOR SHARE`", new: "AND answer IS NULL`",
		tests: storageSQL, test: "TestKeyLeaseStore_TakeoverWaitsForACommit",
	},
	{
		promise: "a settlement waits for the commit", file: storageSQL + "rowlocks.go",
		old: "= `pg_advisory_xact_lock(", new: "= `pg_try_advisory_xact_lock(",
		tests: storageSQL, test: "TestSettleCheckOut_WaitsForACommit",
	},
	{
		promise: "rows are locked by id", file: storageSQL + "rowlocks.go",
		old: "ANY ($1::uuid[]) ORDER BY id FOR UPDATE`\n\tlockItemSQL", new: "ANY ($1::uuid[]) ORDER BY id DESC FOR UPDATE`\n\tlockItemSQL",
		tests: storageSQL, test: "TestMoveRequest_LocksItemsByID",
	},
	{
		promise: "a commit waits for a change of its queue", file: storageSQL + "rowlocks.go",
		old: "` + isWaiting + ` ORDER BY id FOR UPDATE`\n\tlockItemQueuesSQL", new: "` + isWaiting + ` ORDER BY id`\n\tlockItemQueuesSQL",
		tests: storageSQL, test: "TestCheckOut_WaitsForAChangeOfItsQueue",
	},
	{
		promise: "the setting for titles is fenced", file: storageSQL + "rowlocks.go",
		old: "IN ROW SHARE MODE", new: "IN ACCESS SHARE MODE",
		tests: storageSQL, test: "TestExpireRequests_WhileTitlesAreTurnedOnOrOff",
	},
	{
		promise: "the recount counts the patron's loans", file: storageSQL + "openloans.go",
		old: "WHERE l.is_open AND l.user_id = $3::uuid", new: "WHERE l.is_open AND l.id = $3::uuid",
		tests: storageSQL, test: "TestCheckOut_RefusesALoanBeyondTheLimit",
	},
	{
		promise: "the commit releases the lock", file: storageSQL + "checkout.go",
		old: "WHERE id = $8::uuid RETURNING id)", new: "WHERE id = $8::uuid AND false RETURNING id)",
		tests: storageSQL, test: "TestCheckOut_ReleasesTheLock",
	},
	{
		promise: "a key of another body is refused", file: storageSQL + "keyleases.go",
		old: "OR (r.body_hash = excluded.body_hash AND r.answer IS NULL", new: "OR (r.answer IS NULL",
		tests: storageSQL, test: "TestKeyLeaseStore_RefusesAnotherBody",
	},
	{
		promise: "a key lease of the future equals none", file: storageSQL + "keyleases.go",
		old: "OR r.claimed_date > clock_timestamp() + interval '5 s')", new: "OR false)",
		tests: storageSQL, test: "TestKeyLeaseStore_IgnoresALeaseOfTheFuture",
	},
	{
		promise: "settings that changed are not overwritten", file: storageSQL + "locksettings.go",
		old: `change.Version != "" && change.Version != version`, new: `change.Version == "0" && change.Version != stored`,
		tests: storageSQL, test: "TestLockSettings_TwentyChangesOfOneVersion",
	},
	{
		promise: "each change of the settings has a version", file: storageSQL + "locksettings.go",
		old: "SET version = version + 1", new: "SET version = version",
		tests: storageSQL, test: "TestLockSettings_SwitchingOnUnderLoad",
	},
	{
		promise: "a job that was taken over installs nothing", file: storageSQL + "tenantjobs.go",
		old:   "if err == nil && n == 0 || fault.Is(err, fault.UnknownTenant) {\n\t\t\treturn tenantjob.ErrLost",
		new:   "if err == nil && n < 0 {\n\t\t\treturn tenantjob.ErrLost",
		tests: storageSQL, test: "TestTenantJobs_ALateProcessDoesNotInstall",
	},
	{
		promise: "a former deliverer deletes no events", file: storageSQL + "outbox.go",
		old: "WHERE holder = $1::uuid AND fence = $2::bigint),", new: "WHERE $1::uuid IS NOT NULL AND $2::bigint IS NOT NULL),",
		tests: eventRules, test: "TestOutboxStore_Fence",
	},
	{
		promise: "the lock is the patron's", file: commitRules + "checkout.go",
		old: "seen.LockUser != uuid.Nil && seen.LockUser == c.UserID", new: "seen.LockUser != uuid.Nil",
		tests: commitRules, test: "TestCheckOut_Decide",
	},
	{
		promise: "a commit without the lock is refused", file: commitRules + "checkout.go",
		old: "case c.LockID != uuid.Nil && !locked:", new: "case false:",
		tests: commitRules, test: "TestCheckOut_Decide",
	},
	{
		promise: "the limit is not exceeded by one", file: commitRules + "checkout.go",
		old: "open >= limit.Max", new: "open > limit.Max",
		tests: commitRules, test: "TestCheckOut_Decide",
	},
	{
		promise: "other instances' environments count", file: commitRules + "checkout.go",
		old: "case c.LockID == uuid.Nil && seen.EnvironmentOn:", new: "case false:",
		tests: storageSQL, test: "TestCheckOut_IsFencedByTheAnnouncement",
	},
	{
		promise: "a changed item is judged again", file: commitRules + "checkout.go",
		old: "if err := checkVersion(seen.Item, c.ItemVersion); err != nil {", new: "if err := checkVersion(seen.Item, c.ItemVersion); c.ItemVersion < 0 {",
		tests: commitRules, test: "TestCheckOut_Decide",
	},
	{
		promise: "first come, first served", file: lockLine + "line.go",
		old: "return len(ln.places) == 0 || ln.places[0] == c ||", new: "return true ||",
		tests: lockLine, test: "TestService_NewcomersDoNotOvertake",
	},
	{
		promise: "tenants share no lock", file: lockLine + "handover.go",
		old: "ln.patron.tenant != tenant || ", new: "",
		tests: lockLine, test: "TestService_HandsNothingOverToAnotherTenant",
	},
	{
		promise: "a lock for a waiter that left is freed", file: lockLine + "handover.go",
		old: "if !c.settle(&l) {", new: "if !c.settle(&l) && false {",
		tests: lockLine, test: "TestService_ReleasesALockHandedToAWaiterThatHasGone",
	},
	{
		promise: "other processes get their turn", file: lockLine + "turns.go",
		old: "return t.grants >= maxGrants<<doublings ||", new: "return false && t.grants >= maxGrants<<doublings ||",
		tests: lockLine, test: "TestService_LeavesTurnsToOtherProcesses",
	},
	{
		promise: "a patron has a share of the places", file: admission + "line.go",
		old: "return l.admitted < l.options.Places && p.admitted < l.share()", new: "return l.admitted < l.options.Places",
		tests: admission, test: "TestLine_PilesOfOnePatron",
	},
	{
		promise: "settings that were not read lend nothing", file: checkOut + "checkout.go",
		old: `} else if a.settings.Version == "" {`, new: `} else if a.settings.Version == "none" {`,
		tests: checkOut, test: "TestCheckOut_LendsNothingUnderUnreadSettings",
	},
	{
		promise: "a lock that may be granted is given back", file: checkOut + "acquire.go",
		old: "if err != nil && q.maybeGranted {", new: "if err == nil && q.maybeGranted {",
		tests: checkOut, test: "TestAcquire_GivesBackALockThatMayBeGranted",
	},
	{
		promise: "overrides need their permission", file: "circulation/internal/library/judge.go",
		old: "if !okapi.FromContext(ctx).HasPermission(b.Permission) {", new: "if !okapi.FromContext(ctx).HasPermission(b.Permission) && b.Permission == \"\" {",
		tests: checkOut, test: "TestOverrides",
	},
	{
		promise: "the stricter environment decides", file: settings + "announce.go",
		old: "s.Enabled, s.EnabledSource = true, FromOtherInstance", new: "s.Enabled, s.EnabledSource = false, FromOtherInstance",
		tests: settings, test: "TestStore_FollowsTheStricterEnvironment",
	},
	{
		promise: "a repeat looks for the loan first", file: keyed + "requests.go",
		old: "if err != nil || done {\n\t\t\treturn lent, err", new: "if err != nil || done && false {\n\t\t\treturn lent, err",
		tests: keyed, test: "TestRequests_CheckOut",
	},
	{
		promise: "staff need their permission", file: auth + "auth.go",
		old: "if !g.May(c.Request().Context(), permission) {", new: "if !g.May(c.Request().Context(), permission) && permission == \"\" {",
		tests: auth, test: "TestGuard_ChecksTheGatewaysPermissions",
	},
	{
		promise: "forms of other sites change nothing", file: "web/page/csrf.go",
		old: "[]byte(c.FormValue(tokenField))) != 1 {", new: "[]byte(c.FormValue(tokenField))) > 1 {",
		tests: staff, test: "TestCSRF_AcceptsFormsOfOurPagesOnly",
	},
	{
		promise: "permissions without a gateway count nothing", file: edge + "headers.go",
		old: "if o.BelievePermissions {", new: "if true || o.BelievePermissions {",
		tests: edge, test: "TestNew_DropsPermissionsWithoutAGateway",
	},
	{
		promise: "a flat lock has one owner", file: locksSQL + "lockstore.go",
		old: "WHERE NOT ` + live + ` OR l.owner = excluded.owner AND NOT $8::boolean", new: "WHERE true OR ` + live + ` OR $8::boolean",
		tests: locksSQL, test: "TestLockStore",
	},
	{
		promise: "only the owner releases", file: locksSQL + "lockstore.go",
		old: "AND l.owner = $3::text AND ` + live + `\n    RETURNING", new: "AND $3::text <> '' AND ` + live + `\n    RETURNING",
		tests: locksSQL, test: "TestLockStore",
	},
	{
		promise: "each flat grant has a new fence", file: locksSQL + "lockstore.go",
		old: "CASE WHEN j.own THEN l.fence ELSE nextval('{schema}.lock_fence') END", new: "CASE WHEN j.own THEN l.fence ELSE l.fence END",
		tests: locksSQL, test: "TestLockStore",
	},
	{
		promise: "claims are admitted one after the other", file: locksSQL + "claimstore.go",
		old: "SELECT pg_advisory_xact_lock(", new: "SELECT pg_try_advisory_xact_lock(",
		tests: locksSQL, test: "TestClaimStore_FrozenNamespaceStopsNoOther",
	},
	{
		promise: "a claim waits for what is below its path", file: locksSQL + "claimconflict.go",
		old: "` + below + ` AND r.write),", new: "` + below + ` AND r.write AND false),",
		tests: locksSQL, test: "TestClaimStore",
	},
	{
		promise: "an ended lease is not renewed", file: locksSQL + "claimlease.go",
		old:   "WHERE i.id = $1::uuid AND i.ended_at IS NULL AND i.lease_until > clock_timestamp()`\n\n\t",
		new:   "WHERE i.id = $1::uuid`\n\n\t",
		tests: locksSQL, test: "TestClaimStore",
	},
	{
		promise: "tokens have the one algorithm", file: sunbird + "caller.go",
		old: "jwt.SigningMethodRS256.Alg()}", new: "jwt.SigningMethodRS256.Alg(), jwt.SigningMethodRS512.Alg()}",
		tests: sunbird, test: "TestServer_ChecksTokens",
	},
	{
		promise: "tokens end", file: sunbird + "caller.go",
		old: ", jwt.WithExpirationRequired()}", new: "}",
		tests: sunbird, test: "TestServer_ChecksTokens",
	},
	{
		promise: "administrators alone release by force", file: sunbird + "locks.go",
		old: "if !isAdmin {", new: "if !isAdmin && false {",
		tests: sunbird, test: "TestForce",
	},
}
