// Package librarytest has a library in memory, with one patron and one book. Tests of check-outs,
// check-ins and renewals change the fields that they are about.
package librarytest

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
)

// The ids of the library's records.
const (
	DeskID     = "3a40852d-49fd-4df2-a1f9-6e2641a6e91f"
	AnnID      = "77477611-ab44-4082-a0d8-42f7acdfde11"
	AdultsID   = "503a81cd-6c26-400f-b620-14c08943697c"
	BookItemID = "7212ba6a-8dcf-45a1-be9a-ffaa847c4423"
	BookTypeID = "1a54b431-2e4f-452d-9cae-9cee66c9a892"
	CanLendID  = "2b94c631-fca9-4892-a730-03ee529ffe27"
	MainID     = "fcd64ce1-6995-48f0-840e-89ffa2288371"
	ThreeID    = "43198de5-f56a-4a53-a0bd-5a324418967a"
	CarlID     = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378"
	OtherID    = "d9cd0bed-1b49-4b5e-a7bd-064b8d177231"
)

// Rules are circulation rules with a policy of books and a fallback.
const Rules = "priority: last-line\n" +
	"fallback-policy: l " + OtherID + " r r1 n n1 o o1 i i1\n" +
	"m " + BookTypeID + ": l " + ThreeID + " r r1 n n1 o o1 i i1\n"

// Today is the time in the library.
var Today = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// ErrNone is the fault of a record that does not exist.
var ErrNone = fault.New(fault.NotFound, "Not found")

// Records implements library.Records.
type Records struct {
	Patron    library.User
	NoPatron  bool                    // Patron does not exist
	Others    map[string]library.User // by barcode
	Manual    []library.ManualBlock
	Automated []library.AutomatedBlock

	Book   library.Item
	NoBook bool                    // Book does not exist
	Titles bool                    // title-level requests are on
	Queue  []schemas.QueuedRequest // of the book, or with Titles of its instance

	RulesText string
	Policy    string // JSON of the policy that the rules name for books
	NoPolicy  bool   // Policy does not exist
	Schedule  string // JSON of the fixed due date schedule; "" for none

	FailAt int64 // the number of the read that fails; 0 for none
	reads  atomic.Int64
}

// ErrUnread is the fault of the read with the number FailAt.
var ErrUnread = fault.New(fault.Unavailable, "cannot be read")

// Unread counts a read, and returns ErrUnread if it fails.
func (r *Records) Unread() error {
	if r.reads.Add(1) != r.FailAt {
		return nil
	}
	return ErrUnread
}

// Reads returns how many reads there were.
func (r *Records) Reads() int64 { return r.reads.Load() }

// New returns a library in which Ann may borrow the book, three items at most.
func New() *Records {
	active := true
	return &Records{
		Patron: library.User{
			ID: AnnID, Barcode: "ann", Active: &active, PatronGroup: AdultsID,
			Personal: library.Personal{FirstName: "Ann", LastName: "Reader"},
		},
		Book: library.Item{
			ID: BookItemID, Version: 4, Barcode: "book", Status: library.Status{Name: "Available"}, HoldingsRecordID: "h",
			MaterialTypeID: BookTypeID, PermanentLoanTypeID: CanLendID, EffectiveLocationID: MainID,
		},
		RulesText: Rules,
		Policy:    `{"id":"` + ThreeID + `","name":"Three","loanable":true,"renewable":true,"loansPolicy":{"profileId":"Rolling","itemLimit":3,"period":{"duration":2,"intervalId":"Weeks"}}}`,
	}
}

// findUser finds Patron and Others; false for none.
func (r *Records) findUser(id, barcode string) (library.User, bool) {
	if other, exists := r.Others[barcode]; exists && id != r.Patron.ID {
		return other, true
	}
	return r.Patron, !r.NoPatron && (id == r.Patron.ID || barcode == r.Patron.Barcode)
}

// Snapshot implements library.Records. It reads the records one by one.
func (r *Records) Snapshot(_ context.Context, subjects schemas.CheckOutSubjects) (library.Facts, error) {
	var seen library.Facts
	if found, exists := r.findUser(subjects.UserID, subjects.UserBarcode); exists {
		seen.User = found
		seen.ManualBlocks, seen.AutomatedBlocks.Blocks = r.Manual, r.Automated
	}
	if found, exists := r.findUser("", subjects.ProxyUserBarcode); exists {
		seen.Proxy = found
	}
	if subjects.ItemID == r.Book.ID || !r.NoBook && subjects.ItemBarcode == r.Book.Barcode {
		seen.Item = r.Book
		seen.Holdings = library.Holdings{ID: "h", InstanceID: "i"}
		seen.Instance = library.Instance{ID: "i", Title: "Moby Dick"}
		if subjects.TitleLevel == r.Titles {
			seen.Requests = r.Queue
		}
	}
	return seen, r.Unread()
}

// Group implements library.Records.
func (r *Records) Group(context.Context, string) (library.Group, error) {
	return library.Group{ID: AdultsID, Group: "adults"}, r.Unread()
}

// Location implements library.Records.
func (r *Records) Location(context.Context, string) (library.Location, error) {
	return library.Location{ID: MainID, Name: "Main", LibraryID: "lib", CampusID: "city", InstitutionID: "uni"}, r.Unread()
}

// Named implements library.Records.
func (r *Records) Named(context.Context, library.NamedKind, string) (library.Named, error) {
	return library.Named{ID: BookTypeID, Name: "book"}, r.Unread()
}

// TitleLevelRequests implements library.Records.
func (r *Records) TitleLevelRequests(context.Context) (bool, error) { return r.Titles, r.Unread() }

// Rules implements library.Records.
func (r *Records) Rules(context.Context) (*policy.Rules, error) {
	rules, err := policy.Compile(r.RulesText)
	return rules, cmp.Or(err, r.Unread())
}

// FixedSchedule implements library.Records.
func (r *Records) FixedSchedule(context.Context, string) (policy.FixedSchedule, error) {
	if r.Schedule == "" {
		return policy.FixedSchedule{}, ErrNone
	}
	return policy.ParseFixedSchedule([]byte(r.Schedule))
}

// NewRequest returns a request for the book, of a patron, a type, a level and a status.
func NewRequest(id, patronID, kind, level, status string, position int) schemas.QueuedRequest {
	return schemas.QueuedRequest{
		ID: id, RequesterID: patronID, ItemID: BookItemID, InstanceID: "i", RequestType: kind, RequestLevel: level, Status: status, Position: position,
	}
}

// Messages returns the messages of a refusal.
func Messages(err error) []string {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return nil
	}
	return convert.All(f.Details, func(d fault.Detail) string { return d.Message })
}
