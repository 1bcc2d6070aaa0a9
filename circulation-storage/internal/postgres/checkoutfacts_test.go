package postgres_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
)

// addUser stores a patron.
func (l harness) addUser(barcode string) uuid.UUID {
	l.t.Helper()
	id := uuid.New()
	l.exec(`INSERT INTO {schema}.users (id, jsonb) VALUES ($1::uuid, jsonb_build_object('id', $1::uuid, 'username', `+
		`$2::text, 'barcode', $2::text))`, id, barcode)
	return id
}

// readFacts expects the same facts in groups as alone.
func (l harness) readFacts(s schemas.CheckOutSubjects) schemas.CheckOutFacts {
	l.t.Helper()
	facts, err := l.commits.ReadCheckOutFacts(l.ctx(), s)
	if err != nil {
		l.t.Fatal(err)
	}
	if s.ServicePointID != "" {
		return facts
	}
	byBarcode := schemas.CheckOutSubjects{UserBarcode: "p-2", ItemBarcode: "B-2"}
	byID := schemas.CheckOutSubjects{UserID: uuid.NewString()}
	for name, others := range map[string]schemas.CheckOutSubjects{"barcodes": byBarcode, "an id": byID} {
		group, err := l.commits.ReadFactsInGroup(l.ctx(), []schemas.CheckOutSubjects{others, s, {}, s})
		if err != nil {
			l.t.Fatal(err)
		}
		for _, i := range []int{1, 3} {
			if got, want := l.encode(group[i]), l.encode(facts); got != want {
				l.t.Errorf("member %d of a group with %s got %s, want %s as alone", i+1, name, got, want)
			}
		}
	}
	return facts
}

// encode leaves out when the facts were read, and by how many minutes a loan is overdue. Both may change
// between two reads.
func (l harness) encode(facts schemas.CheckOutFacts) string {
	l.t.Helper()
	if facts.ReadAt.IsZero() {
		l.t.Error("the facts do not say when they were read")
	}
	facts.ReadAt = time.Time{}
	facts.OpenLoans = slices.Clone(facts.OpenLoans)
	for i := range facts.OpenLoans {
		facts.OpenLoans[i].OverdueMinutes = min(facts.OpenLoans[i].OverdueMinutes, 1)
	}
	text, err := json.Marshal(facts)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(text)
}

// idOf returns the id of a record, "" of none.
func idOf(t *testing.T, record json.RawMessage) string {
	t.Helper()
	var r struct{ ID string }
	if record == nil {
		return ""
	}
	if err := json.Unmarshal(record, &r); err != nil {
		t.Fatal(err)
	}
	return r.ID
}

func TestCommitStore_ReadCheckOutFacts(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	book := l.addNamed("material_type")
	day := l.addNamed("loan_type")
	patron, proxy, other := l.addUser("P-1"), l.addUser("p-2"), l.addUser("p-3")
	v := l.addTitle(1)
	item := l.addItem("Available", fmt.Sprintf(
		`,"barcode":"B-1","holdingsRecordId":%q,"materialTypeId":%q,"permanentLoanTypeId":%q`, v.holdings, book, day,
	))
	byItem := l.queue(v, item, other, patron)
	byTitle := l.queue(v, uuid.Nil, patron, other)
	l.exec(`UPDATE {schema}.request SET jsonb = jsonb - 'position' || '{"status":"Closed - Cancelled"}' `+
		`WHERE id IN ($1, $2)`, byItem[1].id, byTitle[1].id)
	for _, of := range [][2]uuid.UUID{{patron, proxy}, {other, proxy}, {patron, other}} {
		l.exec(`INSERT INTO {schema}.proxyfor (id, jsonb) VALUES (gen_random_uuid(), `+
			`jsonb_build_object('userId', $1::uuid, 'proxyUserId', $2::uuid))`, of[0], of[1])
	}
	l.exec(`INSERT INTO {schema}.manualblocks (id, jsonb) VALUES (gen_random_uuid(), jsonb_build_object('userId', `+
		`$1::uuid, 'desc', 'lost card'))`, patron)
	l.exec(`INSERT INTO {schema}.automated_patron_blocks (user_id, jsonb) VALUES ($1::uuid, `+
		`'{"automatedPatronBlocks":[{"message":"fees"}]}')`, patron)
	l.addLoan(patron, "Open", "Checked out", fmt.Sprintf(`,"materialTypeId":%q,"permanentLoanTypeId":%q`, book, day))
	l.addLoan(patron, "Open", "Checked out", fmt.Sprintf(`,"materialTypeId":%q,"permanentLoanTypeId":%q`, book, day))
	l.addLoan(patron, "Open", "Claimed returned", fmt.Sprintf(`,"materialTypeId":%q,"permanentLoanTypeId":%q`, book, day))
	l.addLoan(patron, "Closed", "Available", "")

	facts := l.readFacts(schemas.CheckOutSubjects{UserBarcode: "p-1", ProxyUserBarcode: "P-2", ItemBarcode: "b-1"})
	for _, r := range []struct {
		name   string
		record json.RawMessage
		want   uuid.UUID
	}{
		{name: "user", record: facts.User, want: patron},
		{name: "proxy", record: facts.ProxyUser, want: proxy},
		{name: "item", record: facts.Item, want: item},
		{name: "holdings", record: facts.Holdings, want: v.holdings},
		{name: "instance", record: facts.Instance, want: v.instance},
	} {
		if got := idOf(t, r.record); got != r.want.String() {
			t.Errorf("%s: got %q, want %s", r.name, got, r.want)
		}
	}
	if len(facts.ProxyRelations) != 1 || len(facts.ManualBlocks) != 1 ||
		!strings.Contains(string(facts.AutomatedBlocks), "fees") {
		t.Errorf("got %s, %s and %s, want one relation and the blocks of both kinds", facts.ProxyRelations,
			facts.ManualBlocks, facts.AutomatedBlocks)
	}
	want := []schemas.OpenLoans{{MaterialTypeID: book.String(), LoanTypeID: day.String(), Count: 2}}
	if !slices.Equal(facts.OpenLoans, want) {
		t.Errorf("got open loans %+v, want %+v", facts.OpenLoans, want)
	}
	if facts.OnLoan || len(facts.Requests) != 1 || idOf(t, facts.Requests[0]) != byItem[0].id.String() {
		t.Errorf("got on loan %t and queue %s, want the item's own request", facts.OnLoan, facts.Requests)
	}

	if byID := l.readFacts(schemas.CheckOutSubjects{
		UserID: patron.String(), UserBarcode: "p-3",
	}); idOf(t, byID.User) != patron.String() || len(byID.ManualBlocks) != 1 {
		t.Errorf("got the user %s with blocks %s, want the one with the id", byID.User, byID.ManualBlocks)
	}

	titles := l.readFacts(schemas.CheckOutSubjects{ItemID: item.String(), TitleLevel: true})
	if len(titles.Requests) != 2 || !slices.ContainsFunc(titles.Requests,
		func(r json.RawMessage) bool { return idOf(t, r) == byTitle[0].id.String() }) {
		t.Errorf("got queue %s, want the requests for title and item", titles.Requests)
	}
	if idOf(t, titles.Item) != item.String() || titles.User != nil {
		t.Errorf("got item %s and user %s, want the item by its id and no user", titles.Item, titles.User)
	}

	lent := l.withoutLock(l.addItem("Available", `,"barcode":"B-2"`))
	lent.user = patron
	l.lend(lent)
	for user, isTheirs := range map[string]bool{"P-1": true, "p-3": false, "unknown": false} {
		seen := l.readFacts(schemas.CheckOutSubjects{ItemBarcode: "B-2", UserBarcode: user})
		if !seen.OnLoan || seen.OnLoanToUser != isTheirs {
			t.Errorf("%s: on loan %t, to this patron %t, want true and %t", user, seen.OnLoan, seen.OnLoanToUser, isTheirs)
		}
	}
}

func TestCommitStore_ReadCheckOutFacts_OfNothing(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.exec(`INSERT INTO {schema}.users (id, jsonb) VALUES (gen_random_uuid(), '{"username":"u","barcode":""}')`)
	for name, s := range map[string]schemas.CheckOutSubjects{
		"no names":         {},
		"unknown barcodes": {UserBarcode: "x", ProxyUserBarcode: "y", ItemBarcode: "z", TitleLevel: true},
		"an unknown item":  {ItemID: uuid.NewString()},
	} {
		facts := l.readFacts(s)
		facts.ReferenceVersion = ""
		if got := l.encode(facts); got != `{"onLoan":false}` {
			t.Errorf("%s: got %s, want nothing", name, got)
		}
	}
}

// addGroupLimits gives the patron a group with limits, and the conditions that block borrowing.
func (l harness) addGroupLimits(patron uuid.UUID, limits map[string]string) {
	l.t.Helper()
	group := l.addNamed("usergroup")
	l.exec(`UPDATE {schema}.users SET jsonb = jsonb || jsonb_build_object('patronGroup', $2::uuid) WHERE id = $1::uuid`,
		patron, group)
	for condition, value := range limits {
		l.exec(`INSERT INTO {schema}.patron_block_conditions (id, jsonb) VALUES ($1::uuid, jsonb_build_object('id', $1::text,
			'name', $1::text,
			'message', 'M ' || $1::text, 'blockBorrowing', true))`, condition)
		for _, limited := range []uuid.UUID{group, uuid.New()} {
			l.exec(`INSERT INTO {schema}.patron_block_limits (id, jsonb) VALUES (gen_random_uuid(),
				jsonb_build_object('patronGroupId', $1::uuid,
				'conditionId', $2::text) || $3::jsonb)`, limited, condition, value)
		}
	}
}

func TestCommitStore_ReadCheckOutFacts_HasTheLimitsOfTheGroup(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	patron := l.addUser("p-1")
	l.addGroupLimits(patron, map[string]string{
		records.ItemsChargedOut: `{"value":2}`, records.OverdueItems: `{"value":0}`, records.LostItems: `{}`,
		records.OutstandingFeesFines: `{"value":0.5}`,
	})
	l.exec(`INSERT INTO {schema}.patron_block_limits (id, jsonb) SELECT gen_random_uuid(), jsonb || '{"value":9}' FROM ` +
		`{schema}.patron_block_limits`)
	l.exec(`UPDATE {schema}.patron_block_limits SET jsonb = jsonb - 'value' WHERE condition_id = $1::uuid`,
		records.LostItems)
	l.exec(`INSERT INTO {schema}.automated_patron_blocks (user_id, jsonb) VALUES ($1::uuid, `+
		`'{"automatedPatronBlocks":[{"message":"fees"}]}')`, patron)
	l.addLoan(patron, "Open", "Checked out", "")
	l.addDueLoan(patron, time.Hour, "Checked out", "")
	want := []schemas.BlockLimit{
		{Limit: schemas.LoanLimit{Max: 2}, Message: "M " + records.ItemsChargedOut},
		{Limit: schemas.LoanLimit{Max: 1, OverdueMinutes: 1}, Message: "M " + records.OverdueItems},
	}
	facts := l.readFacts(schemas.CheckOutSubjects{UserBarcode: "p-1"})
	if !slices.Equal(facts.BlockLimits, want) {
		t.Errorf("got limits %+v, want %+v", facts.BlockLimits, want)
	}
	blocks, err := postgres.NewRecordStore(l.db, func() {}).PatronBlocks(l.ctx(), patron.String())
	if err != nil || string(blocks) != string(facts.AutomatedBlocks) {
		t.Errorf("got %s, %v, want the blocks of the facts, %s", blocks, err, facts.AutomatedBlocks)
	}
	for _, part := range []string{
		`"message":"fees"`, `"message":"M ` + records.ItemsChargedOut, `"message":"M ` + records.OverdueItems,
	} {
		if strings.Count(string(blocks), part) != 1 {
			t.Errorf("got %s, want one block with %s", blocks, part)
		}
	}
	other := l.addUser("p-2")
	l.addLoan(other, "Open", "Checked out", "")
	if facts := l.readFacts(schemas.CheckOutSubjects{UserBarcode: "p-2"}); facts.BlockLimits != nil ||
		facts.AutomatedBlocks != nil {
		t.Errorf("a patron without a group has %+v and %s", facts.BlockLimits, facts.AutomatedBlocks)
	}
}

// An item without an instance has a queue of its own, also with requests for titles.
func TestCommitStore_ReadCheckOutFacts_OfAnItemWithoutAnInstance(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	item := l.addItem("Available", `,"barcode":"B-1"`)
	l.queue(title{}, item, uuid.New())
	if got := l.readFacts(schemas.CheckOutSubjects{ItemBarcode: "B-1", TitleLevel: true}); len(got.Requests) != 1 {
		t.Errorf("got queue %s, want the item's request", got.Requests)
	}
}

// Without statistics PostgreSQL must not take a statement for one that is worth compiling; with
// many rows it must read no whole table.
func TestCommitStore_ReadCheckOutFacts_PlanIsCheap(t *testing.T) {
	t.Parallel()
	none, ids := []*string{nil, nil}, []*string{new(uuid.NewString()), nil}
	for name, tt := range map[string]struct {
		statement string
		args      []any
	}{
		"of one": {
			statement: postgres.CheckInFactsSQL,
			args:      []any{"p", "i", schemas.MaxQueue, "q", nil, true, nil, uuid.New()},
		},
		"of one by barcodes": {
			statement: postgres.BarcodeFactsSQL, args: []any{"p", "i", schemas.MaxQueue},
		},
		"of several": {
			statement: postgres.SeveralFactsSQL,
			args:      []any{[]string{"p", "p"}, none, schemas.MaxQueue, []string{"q", "q"}, ids, []bool{true, false}, ids},
		},
		"of several by barcodes": {
			statement: postgres.SeveralBarcodeFactsSQL, args: []any{[]string{"p", "p"}, none, schemas.MaxQueue},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkFactsPlan(t, tt.statement, tt.args)
		})
	}
}

func checkFactsPlan(t *testing.T, statement string, args []any) {
	t.Helper()
	l := newHarness(t)
	explain := func(settings string) string {
		t.Helper()
		tx := l.begin(`SELECT set_config('enable_seqscan', $1, true)`, settings)
		defer func() { _ = tx.Rollback(l.ctx()) }()
		var plan string
		if err := tx.QueryRow(l.ctx(), "EXPLAIN (FORMAT JSON) "+l.sql(statement), args...).Scan(&plan); err != nil {
			t.Fatal(err)
		}
		return plan
	}
	var plans []struct {
		Plan struct {
			Cost float64 `json:"Total Cost"`
		}
	}
	if err := json.Unmarshal([]byte(explain("on")), &plans); err != nil {
		t.Fatal(err)
	}
	if cost := plans[0].Plan.Cost; cost > 10_000 {
		t.Errorf("the statement costs %.0f, want at most 10000", cost)
	}
	if plan := explain("off"); strings.Contains(plan, `"Seq Scan"`) {
		t.Errorf("the plan reads a whole table:\n%s", plan)
	}
}

func TestCommitStore_ReadCheckOutFacts_ReferenceVersion(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	version := func() string { return l.readFacts(schemas.CheckOutSubjects{UserBarcode: "p-1"}).ReferenceVersion }
	before := version()
	if err := uuid.Validate(before); err != nil {
		t.Errorf("got %q, want a version", before)
	}
	l.lend(l.withLock(l.addUser("p-1"), l.addItem("Available", "")))
	if now := version(); now != before {
		t.Error("a check-out has changed the version")
	}
	writes := []string{
		`INSERT INTO {schema}.circulation_settings (id, jsonb) VALUES (gen_random_uuid(), '{"name":"n"}')`,
		`UPDATE {schema}.loan_policy SET jsonb = jsonb`,
	}
	for _, table := range []string{
		"addresstype", "circulation_rules", "circulation_settings", "fixed_due_date_schedule", "loan_policy", "loan_type",
		"location", "loccampus", "locinstitution", "loclibrary", "lost_item_fee_policy", "material_type",
		"overdue_fine_policy", "request_policy", "self_check_terminal", "service_point", "usergroup",
	} {
		writes = append(writes, "DELETE FROM {schema}."+table)
	}
	for _, write := range writes {
		l.exec(write)
		now := version()
		if now == before {
			t.Errorf("%s has not changed the version", write)
		}
		before = now
	}
}
