package integration_test

import (
	"net/http"
	"testing"

	"checkoutlock/integration-tests/stack"
)

// The permissions to lift blocks, and the errors that name them.
const (
	mayPatron = "circulation.override-patron-block.post"
	mayLimit  = "circulation.override-item-limit-block.post"
	mayLend   = "circulation.override-item-not-loanable-block.post"

	noPatronPermission = "Insufficient override permissions [INSUFFICIENT_OVERRIDE_PERMISSIONS] {patronBlock: " + mayPatron + "}"
	noLimitPermission  = "Insufficient override permissions [INSUFFICIENT_OVERRIDE_PERMISSIONS] {itemLimitBlock: " + mayLimit + "}"
	noLendPermission   = "Insufficient override permissions [INSUFFICIENT_OVERRIDE_PERMISSIONS] {itemNotLoanableBlock: " + mayLend + "}"
	noComment          = "Override should be performed with the comment specified (comment=null)"

	blockedByHand    = "Patron blocked from borrowing [USER_IS_BLOCKED_MANUALLY] (reason=owes a book)"
	blockedByRule    = "Too many overdue [USER_IS_BLOCKED_AUTOMATICALLY]"
	atTheLimit       = "Patron has reached maximum limit of 1 items for material type [ITEM_LIMIT_MATERIAL_TYPE] (itemBarcode={item}) (itemLimit=1)"
	notLoanable      = "Item is not loanable [ITEM_NOT_LOANABLE] (itemBarcode={item}) (loanPolicyId={policy}) (loanPolicyName=Never)"
	itemIsCheckedOut = "Item is already checked out (itemBarcode={item})\n" +
		"Cannot check out item that already has an open loan [ITEM_HAS_OPEN_LOAN] (itemBarcode={item})"
)

// lift is a check-out's overrideBlocks with a comment, and with no more than that
// the blocks.
func lift(blocks ...record) record {
	return record{"overrideBlocks": with(record{"comment": "as agreed"}, blocks...)}
}

// The blocks, as a check-out lifts them.
var (
	liftPatron = record{"patronBlock": record{}}
	liftLimit  = record{"itemLimitBlock": record{}}
	liftNever  = record{"itemNotLoanableBlock": record{"dueDate": "2999-12-31T00:00:00.000Z"}}
)

// blockByHand and blockByRule keep the patron from borrowing.
func blockByHand(t *testing.T, s *stage) {
	t.Helper()
	s.add(t, "/manualblocks", record{"userId": s.userID, "desc": "owes a book", "type": "Manual", "borrowing": true})
}

func blockByRule(t *testing.T, s *stage) {
	t.Helper()
	if _, err := s.Storage.Must(t.Context(), http.MethodPut, "/automated-patron-blocks/"+s.userID, record{
		"automatedPatronBlocks": []record{{"blockBorrowing": true, "message": "Too many overdue"}},
	}); err != nil {
		t.Fatal(err)
	}
}

// reachLimit lends the patron a book, which is all they may have.
func reachLimit(t *testing.T, s *stage) {
	t.Helper()
	object(t, s.lend(t, 0, s.books(t, 1)[0], s.user), http.StatusCreated)
}

// neverLent takes an item whose policy does not lend.
func neverLent(t *testing.T, s *stage) {
	t.Helper()
	s.of(t, "Never")
}

// lentOut lends the item to somebody else.
func lentOut(t *testing.T, s *stage) {
	t.Helper()
	_, other := s.patron(t)
	object(t, s.lend(t, 0, s.barcode, other), http.StatusCreated)
}

// sending does all that and then changes the check-out.
func sending(more record, do ...func(*testing.T, *stage)) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) {
		t.Helper()
		for _, f := range do {
			f(t, s)
		}
		with(s.more, more)
	}
}

// limitLibrary lends one book at a time, and never what has the policy "Never".
func limitLibrary(t *testing.T) (*pair, map[string]string) {
	t.Helper()
	p := start(t, stack.Options{CirculationEnv: on("STAFF_AUTH=gateway")}, 1)
	return p, p.lendBy(t, map[string]record{"Never": {"loanable": false}})
}

func TestScenariosOfBlocksThatStaffLift(t *testing.T) {
	t.Parallel()
	p, ids := limitLibrary(t)
	overridden := record{"action": "checkedOutThroughOverride", "actionComment": "as agreed"}
	byHand := with(record{"dueDate": "2999-12-31T00:00:00.000Z", "loanPolicyId": ids["Never"]}, overridden)
	all := lift(liftPatron, liftLimit, liftNever)
	p.play(t, ids, []scenario{
		{
			name: "the patron's block by hand is lifted", folio: "override of a manual patron block",
			given: sending(lift(liftPatron), blockByHand), may: []string{mayPatron}, loan: overridden,
		},
		{
			name: "the patron's block by rule is lifted", folio: "override of an automated patron block",
			given: sending(lift(liftPatron), blockByRule), may: []string{mayPatron}, loan: overridden,
		},
		{
			name: "the limit is lifted, under the lock too", folio: "override of the item limit",
			given: sending(lift(liftLimit), reachLimit), may: []string{mayLimit}, loan: overridden,
		},
		{
			name: "what is never lent is lent until the date that staff chose", folio: "override of a not loanable item",
			given: sending(lift(liftNever), neverLent), may: []string{mayLend}, loan: byHand,
		},
		{
			name: "all blocks are lifted at once", folio: "override of several blocks",
			given: sending(all, blockByHand, blockByRule, neverLent), may: []string{mayPatron, mayLimit, mayLend}, loan: byHand,
		},
		{
			name: "patron's block and limit are lifted at once", folio: "override of several blocks",
			given: sending(lift(liftPatron, liftLimit), reachLimit, blockByHand), may: []string{mayPatron, mayLimit}, loan: overridden,
		},
		{
			name: "a block by hand that is none is lifted", folio: "patron block overridden although not needed",
			given: sending(lift(liftPatron)), may: []string{mayPatron}, loan: overridden,
		},
		{
			name: "a limit that is not reached is lifted", folio: "override of the item limit although not needed",
			given: sending(lift(liftLimit)), may: []string{mayLimit}, loan: overridden,
		},
		{
			name: "what is lent anyway is lent until the date that staff chose", folio: "override of a not loanable item although not needed",
			given: sending(lift(liftNever)), may: []string{mayLend},
			loan: with(record{"dueDate": "2999-12-31T00:00:00.000Z"}, overridden),
		},
		{
			name: "an overridden loan can be recalled", folio: "recall request after an overridden check-out",
			given: sending(lift(liftNever), neverLent), may: []string{mayLend}, loan: byHand,
			after: func(t *testing.T, s *stage, _ record) {
				t.Helper()
				other, _ := s.patron(t)
				recall := object(t, do(t, s.machines[0], http.MethodPost, "/circulation/requests", record{
					"requestLevel": "Item", "requestType": "Recall", "requestDate": "2026-03-01T10:00:00Z", "requesterId": other,
					"itemId": s.itemID, "holdingsRecordId": s.HoldingsID, "instanceId": part(s.stored(t, "/holdings-storage/holdings/"+s.HoldingsID), "instanceId"),
					"fulfillmentPreference": "Hold Shelf", "pickupServicePointId": s.ServicePointID,
				}), http.StatusCreated)
				checkParts(t, "recall", recall, record{"status": "Open - Not yet filled", "position": 1.0, "itemId": s.itemID})
			},
		},
	})
}

func TestScenariosOfBlocksThatAreNotLifted(t *testing.T) {
	t.Parallel()
	p, ids := limitLibrary(t)
	const other = "circulation.override-renewal-block.post"
	missing := map[string]string{mayPatron: " {patronBlock: " + mayPatron + "}", mayLimit: " {itemLimitBlock: " + mayLimit + "}", mayLend: " {itemNotLoanableBlock: " + mayLend + "}"}
	none := func(block string) string { return " {" + block + ": }" }
	due := func(date any) record { return lift(record{"itemNotLoanableBlock": record{"dueDate": date}}) }
	at := func(date string, more record) record { return with(record{"loanDate": date}, more) }
	uncommented := func(blocks record) record { return record{"overrideBlocks": blocks} }
	p.play(t, ids, []scenario{
		{name: "a block by hand, with nothing said", folio: "override not in the request", given: blockByHand, refused: blockedByHand + missing[mayPatron]},
		{name: "a block by rule, with nothing said", folio: "automated block", given: blockByRule, refused: blockedByRule + missing[mayPatron]},
		{name: "the limit, with nothing said", folio: "override not in the request", given: reachLimit, refused: atTheLimit + missing[mayLimit]},
		{name: "never lent, with nothing said", folio: "override not in the request", given: neverLent, refused: notLoanable + missing[mayLend]},
		{
			name: "permission without a word lifts nothing", folio: "override not in the request",
			given: sending(record{"overrideBlocks": record{}}, blockByHand, neverLent), may: []string{mayPatron, mayLimit, mayLend},
			refused: blockedByHand + none("patronBlock") + "\n" + notLoanable + none("itemNotLoanableBlock"),
		},
		{name: "a patron's block without permission", folio: "no permission for the patron block", given: sending(lift(liftPatron), blockByHand), refused: noPatronPermission},
		{name: "a patron's block with another permission", folio: "wrong permission for the patron block", given: sending(lift(liftPatron), blockByRule), may: []string{mayLimit, other}, refused: noPatronPermission},
		{name: "the limit without permission", folio: "no permission for the limit", given: sending(lift(liftLimit), reachLimit), refused: noLimitPermission},
		{name: "the limit with another permission", folio: "wrong permission for the limit", given: sending(lift(liftLimit), reachLimit), may: []string{mayPatron, other}, refused: noLimitPermission},
		{name: "never lent without permission", folio: "no permission for a not loanable item", given: sending(lift(liftNever), neverLent), refused: noLendPermission},
		{name: "never lent with another permission", folio: "wrong permission for a not loanable item", given: sending(lift(liftNever), neverLent), may: []string{mayPatron, other}, refused: noLendPermission},
		{
			name: "all permissions that are missing are named", folio: "combined missing permissions",
			given:   sending(lift(liftPatron, liftLimit, liftNever), blockByHand, blockByRule, neverLent),
			refused: noPatronPermission + "\n" + noLimitPermission + "\n" + noLendPermission,
		},
		{
			name: "one permission of two is missing", folio: "combined missing permissions",
			given: sending(lift(liftPatron, liftLimit), reachLimit, blockByHand), may: []string{mayPatron}, refused: noLimitPermission,
		},
		{name: "a patron's block without a comment", folio: "comment missing", given: sending(uncommented(liftPatron), blockByHand), may: []string{mayPatron}, refused: noComment},
		{name: "the limit without a comment", folio: "comment missing", given: sending(uncommented(liftLimit), reachLimit), may: []string{mayLimit}, refused: noComment},
		{name: "never lent without a comment", folio: "comment missing", given: sending(uncommented(liftNever), neverLent), may: []string{mayLend}, refused: noComment},
		{name: "never lent without a due date", folio: "due date missing", given: sending(due(nil), neverLent), may: []string{mayLend}, refused: "Override should be performed with due date specified (dueDate=null)"},
		{
			name: "due before it is lent", folio: "due date before the loan date",
			given: sending(at("2026-03-02T00:00:00.000Z", due("2026-03-01T23:59:59.999Z")), neverLent), may: []string{mayLend},
			refused: "Due date should be later than loan date (dueDate=2026-03-01T23:59:59.999Z)",
		},
		{
			name: "due when it is lent", folio: "due date equal to the loan date",
			given: sending(at("2026-03-02T00:00:00.000Z", due("2026-03-02T00:00:00.000Z")), neverLent), may: []string{mayLend},
			refused: "Due date should be later than loan date (dueDate=2026-03-02T00:00:00.000Z)",
		},
		{
			name: "an item on loan is not lent by lifting blocks", folio: "no override of other errors",
			given: sending(lift(liftPatron), blockByHand, lentOut), may: []string{mayPatron}, refused: itemIsCheckedOut,
		},
		{
			name: "an item on loan, and no permission for the patron's block", folio: "already checked out and no permission for the patron block",
			given: sending(lift(liftPatron), blockByHand, lentOut), refused: noPatronPermission + "\n" + itemIsCheckedOut,
		},
		{
			name: "an item on loan, and the limit lifted", folio: "no override of other errors",
			given: sending(lift(liftLimit), reachLimit, lentOut), may: []string{mayLimit}, refused: itemIsCheckedOut,
		},
	})
}
