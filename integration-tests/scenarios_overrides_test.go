package integration_test

import (
	"net/http"
	"testing"
)

// The permissions to lift blocks, and expected errors.
const (
	mayPatron = "circulation.override-patron-block.post"
	mayLimit  = "circulation.override-item-limit-block.post"
	mayLend   = "circulation.override-item-not-loanable-block.post"

	noPatronPermission = "Insufficient override permissions [INSUFFICIENT_OVERRIDE_PERMISSIONS] {patronBlock: " +
		mayPatron + "}"
	noLimitPermission = "Insufficient override permissions [INSUFFICIENT_OVERRIDE_PERMISSIONS] {itemLimitBlock: " +
		mayLimit + "}"
	noLendPermission = "Insufficient override permissions [INSUFFICIENT_OVERRIDE_PERMISSIONS] {itemNotLoanableBlock: " +
		mayLend + "}"
	noComment = "Override should be performed with the comment specified [PROPERTY_MISSING] (comment=null)"

	blockedByHand = "Patron blocked from borrowing [USER_IS_BLOCKED_MANUALLY] (reason=owes a book)"
	blockedByRule = "Too many overdue [USER_IS_BLOCKED_AUTOMATICALLY]"
	atTheLimit    = "Patron has reached maximum limit of 1 items for material type [ITEM_LIMIT_MATERIAL_TYPE] " +
		"(itemBarcode={item}) (itemLimit=1)"
	notLoanable = "Item is not loanable [ITEM_NOT_LOANABLE] (itemBarcode={item}) (loanPolicyId={policy}) " +
		"(loanPolicyName=Never)"
	itemIsCheckedOut = "Item is already checked out [ITEM_ALREADY_CHECKED_OUT] (itemBarcode={item})"
)

// liftBlocks returns a check-out's overrideBlocks with a comment.
func liftBlocks(blocks ...record) record {
	return record{"overrideBlocks": setFields(record{"comment": "as agreed"}, blocks...)}
}

// The blocks as a check-out lifts them.
var (
	liftPatron = record{"patronBlock": record{}}
	liftLimit  = record{"itemLimitBlock": record{}}
	liftNever  = record{"itemNotLoanableBlock": record{"dueDate": "2999-12-31T00:00:00.000Z"}}
)

// blockByHand stores a manual block of the patron.
func blockByHand(t *testing.T, s *stage) {
	t.Helper()
	s.addRecord(t, "/manualblocks", record{"userId": s.userID, "desc": "owes a book", "type": "Manual", "borrowing": true})
}

// blockByRule stores an automated block of the patron.
func blockByRule(t *testing.T, s *stage) {
	t.Helper()
	s.storeAutomatedBlocks(t, s.userID, record{"blockBorrowing": true, "message": "Too many overdue"})
}

// reachLimit lends the patron a book, which is the limit.
func reachLimit(t *testing.T, s *stage) {
	t.Helper()
	readObject(t, s.lendBook(t, 0, s.addBooks(t, 1)[0], s.userBarcode), http.StatusCreated)
}

// useNeverLentItem gives the stage an item whose policy does not lend.
func useNeverLentItem(t *testing.T, s *stage) {
	t.Helper()
	s.useItemOf(t, "Never")
}

// lendToAnother lends the item to another patron.
func lendToAnother(t *testing.T, s *stage) {
	t.Helper()
	_, other := s.addPatron(t)
	readObject(t, s.lendBook(t, 0, s.barcode, other), http.StatusCreated)
}

// setCheckOut calls the functions and then sets properties of the check-out.
func setCheckOut(more record, do ...func(*testing.T, *stage)) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) {
		t.Helper()
		for _, f := range do {
			f(t, s)
		}
		setFields(s.extra, more)
	}
}

// startLimitLibrary starts a library with a limit of 1 and a policy "Never" that does not
// lend.
func startLimitLibrary(t *testing.T) (*pair, map[string]string) {
	t.Helper()
	p := joinSharedPair(t, 1)
	return p, p.addPoliciesWithRules(t, map[string]record{"Never": {"loanable": false}})
}

func TestScenarios_LiftedBlocks(t *testing.T) {
	t.Parallel()
	p, ids := startLimitLibrary(t)
	overridden := record{"action": "checkedOutThroughOverride", "actionComment": "as agreed"}
	byHand := setFields(record{"dueDate": "2999-12-31T00:00:00.000Z", "loanPolicyId": ids["Never"]}, overridden)
	all := liftBlocks(liftPatron, liftLimit, liftNever)
	p.runScenarios(t, ids, []scenario{
		{
			name: "the patron's block by hand is lifted", folio: "override of a manual patron block",
			prepare: setCheckOut(liftBlocks(liftPatron), blockByHand), permissions: []string{mayPatron}, wantLoan: overridden,
		},
		{
			name: "the patron's block by rule is lifted", folio: "override of an automated patron block",
			prepare: setCheckOut(liftBlocks(liftPatron), blockByRule), permissions: []string{mayPatron}, wantLoan: overridden,
		},
		{
			name: "the limit is lifted also with the lock", folio: "override of the item limit",
			prepare: setCheckOut(liftBlocks(liftLimit), reachLimit), permissions: []string{mayLimit}, wantLoan: overridden,
		},
		{
			name: "an item that is never lent is due when staff say", folio: "override of a not loanable item",
			prepare: setCheckOut(liftBlocks(liftNever), useNeverLentItem), permissions: []string{mayLend}, wantLoan: byHand,
		},
		{
			name: "all blocks are lifted at once", folio: "override of several blocks",
			prepare: setCheckOut(all, blockByHand, blockByRule, useNeverLentItem), permissions: []string{
				mayPatron, mayLimit, mayLend,
			}, wantLoan: byHand,
		},
		{
			name: "patron's block and limit are lifted at once", folio: "override of several blocks",
			prepare:     setCheckOut(liftBlocks(liftPatron, liftLimit), reachLimit, blockByHand),
			permissions: []string{mayPatron, mayLimit}, wantLoan: overridden,
		},
		{
			name: "a patron block is lifted without need", folio: "patron block overridden although not needed",
			prepare: setCheckOut(liftBlocks(liftPatron)), permissions: []string{mayPatron}, wantLoan: overridden,
		},
		{
			name: "the limit is lifted without need", folio: "override of the item limit although not needed",
			prepare: setCheckOut(liftBlocks(liftLimit)), permissions: []string{mayLimit}, wantLoan: overridden,
		},
		{
			name:    "an item that is always lent is due when staff say",
			folio:   "override of a not loanable item although not needed",
			prepare: setCheckOut(liftBlocks(liftNever)), permissions: []string{mayLend},
			wantLoan: setFields(record{"dueDate": "2999-12-31T00:00:00.000Z"}, overridden),
		},
		{
			name: "an overridden loan can be recalled", folio: "recall request after an overridden check-out",
			prepare: setCheckOut(liftBlocks(liftNever), useNeverLentItem), permissions: []string{mayLend}, wantLoan: byHand,
			check: func(t *testing.T, s *stage, _ record) {
				t.Helper()
				other, _ := s.addPatron(t)
				recall := readObject(t, s.placeRequest(t, s.itemID, other, "Recall", record{
					"requestDate": "2026-03-01T10:00:00Z", "holdingsRecordId": s.HoldingsID,
				}), http.StatusCreated)
				checkParts(t, "recall", recall, record{"status": "Open - Not yet filled", "position": 1.0, "itemId": s.itemID})
			},
		},
	})
}

func TestScenarios_KeptBlocks(t *testing.T) {
	t.Parallel()
	p, ids := startLimitLibrary(t)
	const other = "circulation.override-renewal-block.post"
	missing := map[string]string{
		mayPatron: " {patronBlock: " + mayPatron + "}", mayLimit: " {itemLimitBlock: " + mayLimit + "}",
		mayLend: " {itemNotLoanableBlock: " + mayLend + "}",
	}
	none := func(block string) string { return " {" + block + ": }" }
	due := func(date any) record { return liftBlocks(record{"itemNotLoanableBlock": record{"dueDate": date}}) }
	at := func(date string, more record) record { return setFields(record{"loanDate": date}, more) }
	uncommented := func(blocks record) record { return record{"overrideBlocks": blocks} }
	p.runScenarios(t, ids, []scenario{
		{
			name: "a block by hand without an override", folio: "override not in the request", prepare: blockByHand,
			wantErrors: blockedByHand + missing[mayPatron],
		},
		{
			name: "a block by rule without an override", folio: "automated block", prepare: blockByRule,
			wantErrors: blockedByRule + missing[mayPatron],
		},
		{
			name: "the limit without an override", folio: "override not in the request", prepare: reachLimit,
			wantErrors: atTheLimit + missing[mayLimit],
		},
		{
			name: "never lent without an override", folio: "override not in the request", prepare: useNeverLentItem,
			wantErrors: notLoanable + missing[mayLend],
		},
		{
			name: "permissions without overrides lift nothing", folio: "override not in the request",
			prepare: setCheckOut(record{"overrideBlocks": record{}}, blockByHand, useNeverLentItem), permissions: []string{
				mayPatron, mayLimit, mayLend,
			},
			wantErrors: blockedByHand + none("patronBlock") + "\n" + notLoanable + none("itemNotLoanableBlock"),
		},
		{
			name: "a patron's block without permission", folio: "no permission for the patron block",
			prepare: setCheckOut(liftBlocks(liftPatron), blockByHand), wantErrors: noPatronPermission,
		},
		{
			name: "a patron's block with another permission", folio: "wrong permission for the patron block",
			prepare: setCheckOut(liftBlocks(liftPatron), blockByRule), permissions: []string{mayLimit, other},
			wantErrors: noPatronPermission,
		},
		{
			name: "the limit without permission", folio: "no permission for the limit",
			prepare: setCheckOut(liftBlocks(liftLimit), reachLimit), wantErrors: noLimitPermission,
		},
		{
			name: "the limit with another permission", folio: "wrong permission for the limit",
			prepare: setCheckOut(liftBlocks(liftLimit), reachLimit), permissions: []string{mayPatron, other},
			wantErrors: noLimitPermission,
		},
		{
			name: "never lent without permission", folio: "no permission for a not loanable item",
			prepare: setCheckOut(liftBlocks(liftNever), useNeverLentItem), wantErrors: noLendPermission,
		},
		{
			name: "never lent with another permission", folio: "wrong permission for a not loanable item",
			prepare: setCheckOut(liftBlocks(liftNever), useNeverLentItem), permissions: []string{mayPatron, other},
			wantErrors: noLendPermission,
		},
		{
			name: "all missing permissions are named", folio: "combined missing permissions",
			prepare:    setCheckOut(liftBlocks(liftPatron, liftLimit, liftNever), blockByHand, blockByRule, useNeverLentItem),
			wantErrors: noPatronPermission + "\n" + noLimitPermission + "\n" + noLendPermission,
		},
		{
			name: "one permission of two is missing", folio: "combined missing permissions",
			prepare: setCheckOut(liftBlocks(liftPatron, liftLimit), reachLimit, blockByHand), permissions: []string{mayPatron},
			wantErrors: noLimitPermission,
		},
		{
			name: "a patron's block without a comment", folio: "comment missing",
			prepare: setCheckOut(uncommented(liftPatron), blockByHand), permissions: []string{mayPatron}, wantErrors: noComment,
		},
		{
			name: "the limit without a comment", folio: "comment missing",
			prepare: setCheckOut(uncommented(liftLimit), reachLimit), permissions: []string{mayLimit}, wantErrors: noComment,
		},
		{
			name: "never lent without a comment", folio: "comment missing",
			prepare: setCheckOut(uncommented(liftNever), useNeverLentItem), permissions: []string{mayLend},
			wantErrors: noComment,
		},
		{
			name: "never lent without a due date", folio: "due date missing", prepare: setCheckOut(due(nil), useNeverLentItem),
			permissions: []string{mayLend},
			wantErrors:  "Override should be performed with due date specified [PROPERTY_MISSING] (dueDate=null)",
		},
		{
			name: "due before it is lent", folio: "due date before the loan date",
			prepare:     setCheckOut(at("2026-03-02T00:00:00.000Z", due("2026-03-01T23:59:59.999Z")), useNeverLentItem),
			permissions: []string{mayLend},
			wantErrors:  "Due date should be later than loan date [INVALID] (dueDate=2026-03-01T23:59:59.999Z)",
		},
		{
			name: "due when it is lent", folio: "due date equal to the loan date",
			prepare:     setCheckOut(at("2026-03-02T00:00:00.000Z", due("2026-03-02T00:00:00.000Z")), useNeverLentItem),
			permissions: []string{mayLend},
			wantErrors:  "Due date should be later than loan date [INVALID] (dueDate=2026-03-02T00:00:00.000Z)",
		},
		{
			name: "an item on loan is not lent by lifting blocks", folio: "no override of other errors",
			prepare: setCheckOut(liftBlocks(liftPatron), blockByHand, lendToAnother), permissions: []string{mayPatron},
			wantErrors: itemIsCheckedOut,
		},
		{
			name:    "an item on loan, and no permission for the patron's block",
			folio:   "already checked out and no permission for the patron block",
			prepare: setCheckOut(liftBlocks(liftPatron), blockByHand, lendToAnother), wantErrors: noPatronPermission + "\n" +
				itemIsCheckedOut,
		},
		{
			name: "an item on loan, and the limit lifted", folio: "no override of other errors",
			prepare: setCheckOut(liftBlocks(liftLimit), reachLimit, lendToAnother), permissions: []string{mayLimit},
			wantErrors: itemIsCheckedOut,
		},
	})
}
