package commit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
	"checkoutlock/schemas/okapi"
)

// parseBody decodes a body and checks it against its JSON Schema.
func parseBody(schema string, body []byte) (records.Record, error) {
	doc, err := records.Decode(body)
	if err != nil {
		return nil, err
	}
	return doc, jsonschema.Check(schema, map[string]any(doc))
}

// Seen is what the transaction of a commit locked and read, in this order. What does not exist is
// zero, and so is what the commit does not need.
type Seen struct {
	// LeasedLoan is the loan of the check-out's key lease; Nil also if its key is finished.
	LeasedLoan uuid.UUID
	// LockUser is the patron of the check-out's lock; Nil also if TakeLock found another one.
	LockUser        uuid.UUID
	SettingsVersion string // the stored one
	EnvironmentOn   bool   // the environment of an instance turns the lock on
	TitlesOn        bool   // there are requests for titles

	Instance bool
	Item     records.Record
	Items    []records.Record // of a commit for several items
	Loan     records.Record   // the one that is named; of a check-in and of requests, the item's open one
	Queue    Queue            // the open requests of the items or, for TitleLevel or no item, of the instance
	// OtherTitles are open requests outside an instance's queue, of other instances, for the items of the
	// queue and the commit's item. They are not locked.
	OtherTitles Queue

	// Now is the database's clock, read once after the last row was locked.
	Now time.Time
	// Before is the item, the loan or the request of the committed change with the same id. It was
	// read after that was locked.
	Before uuid.UUID
	// Past is the answer to that change, if it was a check-in.
	Past     schemas.CheckInResult
	Request  records.Record // as stored; it is locked if it is in the queue
	Recalled bool           // an open recall names the loan's item
	GivenUp  bool           // the check-out was settled as not lent
	OnLoan   bool           // the item of the check-out has an open loan
	// OpenLoans is how many open loans each of the check-out's Limits counts: of items that exist and
	// are not claimed returned. A statement of its own counted them, after the lock was locked.
	OpenLoans []int
}

// Change is what a commit writes and answers. What is zero is not written.
type Change struct {
	// Repeated means that it was committed before: nothing is written. Loan, Item and Request are as
	// they are stored, and Past is the answer to a check-in.
	Repeated bool
	Past     schemas.CheckInResult

	Loan     records.Record
	Items    []records.Record // those that change
	Requests []records.Record // those of the queue that change
	Session  records.Record   // the patron action session
	CheckIn  records.Record   // the record of a check-in at a desk
	Events   []Event
	Closed   int // how many of the Requests had expired

	Item    records.Record // the answered one as it is then, also if it stays; nil for none
	Request records.Record // one that is placed or moved, as it is then
	Queue   Queue          // all of a queue that is ordered, in its order
}

// setItem changes the item that the commit answers.
func (c *Change) setItem(item records.Record) {
	c.Item, c.Items = item, append(c.Items, item)
}

// withStatus returns a copy of the item with another status.
func withStatus(item records.Record, status string) records.Record {
	item = clone(item)
	item["status"] = map[string]any{"name": status}
	return item
}

// stampOnly is the Prepare of a type whose records are only stamped.
func stampOnly(stamp func(records.Write)) func(context.Context, records.Reader, records.Write) error {
	return func(_ context.Context, _ records.Reader, w records.Write) error {
		stamp(w)
		return nil
	}
}

// complete makes the records of the change ready to be written, by the rules of their types, over the
// stored ones. It does not read the holdings records of the items, which would have to be locked
// before them: they only change their statuses. Requests of a queue keep what they are for. So one that
// breaks a rule of new requests keeps no others waiting.
func (c Change) complete(ctx context.Context, now time.Time, loan records.Record, items, queue []records.Record) (Change, error) {
	user, item, queued := okapi.FromContext(ctx).UserID, records.Item, records.Request
	item.Prepare, queued.Prepare = stampOnly(records.StampStatus), stampOnly(records.StampClosed)
	var err error
	write := func(t records.Type, r, stored records.Record) {
		if r != nil && err == nil {
			err = t.Complete(ctx, nil, records.Write{Record: r, Stored: stored, Now: now, UserID: user})
		}
	}
	write(records.Loan, c.Loan, loan)
	for _, changed := range c.Items {
		write(item, changed, find(items, changed.ID()))
	}
	for _, changed := range c.Requests {
		write(queued, changed, find(queue, changed.ID()))
	}
	if find(queue, c.Request.ID()) == nil {
		write(records.Request, c.Request, nil)
	}
	write(records.PatronActionSession, c.Session, nil)
	write(records.CheckInOperation, c.CheckIn, nil)
	if err != nil {
		return Change{}, err
	}
	return c, nil
}

// find returns the record with an id, nil if there is none.
func find(all []records.Record, id string) records.Record {
	if at := indexOf(all, id); at >= 0 {
		return all[at]
	}
	return nil
}

// Event is a row of the outbox. Package events makes messages of it. Its names are looked up when it is
// sent.
type Event struct {
	Type    string
	Payload map[string]any
}

// The types of events, as FOLIO names them.
const (
	ItemCheckedOut      = "ITEM_CHECKED_OUT"
	ItemCheckedIn       = "ITEM_CHECKED_IN"
	LoanDueDateChanged  = "LOAN_DUE_DATE_CHANGED"
	ItemClaimedReturned = "ITEM_CLAIMED_RETURNED"
	ItemDeclaredLost    = "ITEM_DECLARED_LOST"
	LoanClosed          = "LOAN_CLOSED"
	// LogRecord goes to FOLIO's circulation log alone. Its payload names the kind of entry in logEventType.
	LogRecord = "LOG_RECORD"
)

// newEvent adds who acted, and leaves out empty values, which FOLIO's circulation log would show.
func newEvent(ctx context.Context, kind string, payload map[string]any) Event {
	call := okapi.FromContext(ctx)
	payload["requestId"], payload["updatedByUserId"] = call.RequestID, call.UserID
	maps.DeleteFunc(payload, isEmpty)
	return Event{Type: kind, Payload: payload}
}

func isEmpty(_ string, value any) bool { return value == "" || value == nil }

// newLoanEvent returns the event of a loan that was before.
func newLoanEvent(ctx context.Context, kind string, before, loan records.Record) Event {
	payload := map[string]any{
		"loanId": loan.ID(), "userId": loan.Text("userId"), "itemId": loan.Text("itemId"),
		"dueDate": loan.Text("dueDate"), "previousDueDate": before.Text("dueDate"), "dueDateChangedByRecall": loan[changedByRecall] == true,
		"action": loan.Text("action"), "actionComment": loan.Text("actionComment"),
		"servicePointId": cmp.Or(loan.Text("checkinServicePointId"), loan.Text("checkoutServicePointId")),
	}
	if kind == LogRecord {
		payload["logEventType"] = "LOAN"
	}
	return newEvent(ctx, kind, payload)
}

// newRequestEvent returns the event of requests of a patron.
func newRequestEvent(ctx context.Context, kind string, of records.Record, requests map[string]any) Event {
	return newEvent(ctx, LogRecord, map[string]any{
		"logEventType": kind, "userId": of.Text("requesterId"), "itemId": of.Text("itemId"), "requests": requests,
	})
}

// clone copies a record, so that its properties can be replaced. It shares nested
// objects: replace them, do not change them.
func clone(r records.Record) records.Record { return maps.Clone(r) }

func checkVersion(item records.Record, judged int) error {
	if stored, _ := item.Version(); stored != judged {
		return fault.New(fault.ItemChanged, "The item has changed: its _version is %d, not %d. Read it again", stored, judged)
	}
	return nil
}

func newNoItem(key string, id uuid.UUID) error {
	return newInvalid("there is no item with this id", key, id.String())
}

// newInvalid shows at most the start of a refused value.
func newInvalid(message, key, value string) error {
	return fault.StorageRefusal(message, fault.Param(key, fmt.Sprintf("%.100s", value)))
}

// readID reads a UUID that the schema has checked; Nil if there is none.
func readID(r records.Record, path string) uuid.UUID {
	parsed, _ := uuid.Parse(r.Text(path))
	return parsed
}

// readInteger reads an integer that the schema has checked. It may be written 2.0.
func readInteger(v any) int {
	n, _ := v.(json.Number)
	f, _ := strconv.ParseFloat(n.String(), 64)
	return int(f)
}
