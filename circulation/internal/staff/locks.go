package staff

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/redact"
)

// The page Live locks: who holds what, for how long.

const (
	locksShown = 100
	locksEvery = time.Second
)

type locksPage struct {
	Patron, Holder field
	State          string // what is asked for: empty for all, held or outdated
	ShowPatrons    bool
	Problems       []field
	List           *locksList // nil when the filter is wrong
	Action         string     // paths
	All            string
	Live           string
	Refresh        string
}

// locksList is the part of the page that a stream sends again.
type locksList struct {
	Rows          []lockRow
	Summary       string
	Enabled       bool
	Filtered      bool
	ShowPatrons   bool
	TogglePatrons string // paths
	Feature       string // where the lock is turned on; empty for who may not
}

type lockRow struct {
	schemas.CheckoutLock
	Patron  string // masked until asked for
	Age     int64  // ms, never negative
	Left    int64  // likewise
	Release string // path; empty for who may not
}

// locks handles GET /staff/{tenant}/locks.
func (p *Pages) locks(v *visit) error {
	page, filter, err := readLockFilter(v)
	if err != nil {
		return err
	}
	if filter.UserID, page.Patron.Wrong, err = p.findPatron(v, page.Patron.Value); err != nil {
		return err
	}
	page.Problems = problems(page.Patron)
	status := http.StatusUnprocessableEntity
	if len(page.Problems) == 0 {
		list, err := p.listLocks(v, filter)
		switch {
		case isAbout(err, "holder"):
			page.Holder.Wrong = "No instance can have this name."
			page.Problems = problems(page.Holder)
		case err != nil:
			return err
		default:
			status = http.StatusOK
			page.List = &list
		}
	}
	return v.show(status, "locks.html", "/locks", "Live locks", page)
}

// liveLocks handles GET /staff/{tenant}/locks/live, with the page's query.
func (p *Pages) liveLocks(v *visit) error {
	page, filter, err := readLockFilter(v)
	if err != nil {
		return err
	}
	find := func() error { // the patron, until storage has answered once
		if filter.UserID != "" {
			return nil
		}
		id, wrong, err := p.findPatron(v, page.Patron.Value)
		if wrong != "" {
			return fault.New(fault.Invalid, "%s", wrong)
		}
		filter.UserID = id
		return err
	}
	if err := find(); fault.Is(err, fault.Invalid) {
		return err // what else went wrong may pass while the stream goes on
	}
	return p.stream(v, locksEvery, func() ([]byte, error) {
		if err := find(); err != nil {
			return nil, err
		}
		list, err := p.listLocks(v, filter)
		if err != nil {
			return nil, err
		}
		return p.part("locks.html", "live", list)
	})
}

// readLockFilter reads the query, all but the patron's id, which storage knows.
func readLockFilter(v *visit) (locksPage, admin.LockFilter, error) {
	q := v.QueryParams()
	page := locksPage{
		Patron: field{Name: "patron", Label: "Patron's barcode or id", Value: strings.TrimSpace(q.Get("patron"))},
		Holder: field{Name: "holder", Label: "Held by (an instance)", Value: strings.TrimSpace(q.Get("holder"))},
		State:  q.Get("state"), ShowPatrons: patronsAsked(v), Action: v.path("/locks"), All: v.pathWithPatrons("/locks"),
	}
	filter := admin.LockFilter{Holder: page.Holder.Value, Limit: locksShown}
	switch page.State {
	case "", "held", "outdated":
		if page.State != "" {
			outdated := page.State == "outdated"
			filter.Outdated = &outdated
		}
	default:
		return page, filter, fault.New(fault.Malformed, "Locks are held or outdated, not %s", fault.Shown(page.State))
	}
	query := v.Request().URL.Query()
	query.Del("done")
	page.Live, page.Refresh = v.path("/locks/live")+"?"+query.Encode(), v.path("/locks")+"?"+query.Encode()
	return page, filter, nil
}

// isAbout tells whether err refuses the parameter with the name.
func isAbout(err error, name string) bool {
	var f *fault.Error
	return errors.As(err, &f) && f.Code == fault.Invalid && slices.ContainsFunc(f.Details, func(d fault.Detail) bool {
		return len(d.Parameters) > 0 && d.Parameters[0].Key == name
	})
}

// findPatron returns the id of the patron with a barcode or an id; wrong says why
// there is none.
func (p *Pages) findPatron(v *visit, text string) (id, wrong string, err error) {
	if text == "" || schemas.IsFolioUUID(text) {
		return text, "", nil
	}
	id, found, err := fault.Found(p.Admin.PatronID(v.ctx(), text))
	switch {
	case err != nil:
		return "", "", err
	case !found:
		return "", "No patron has this barcode.", nil
	case !schemas.IsFolioUUID(id): // storage refuses it
		return "", "This patron's id is of a kind that no lock can have.", nil
	}
	return id, "", nil
}

func (p *Pages) listLocks(v *visit, filter admin.LockFilter) (locksList, error) {
	locks, err := p.Admin.Locks(v.ctx(), filter)
	if err != nil {
		return locksList{}, err
	}
	list := locksList{Summary: summary(locks), Filtered: filter != admin.LockFilter{Limit: locksShown}}
	list.ShowPatrons, list.TogglePatrons = patronsShown(v, "/locks")
	if len(locks.CheckoutLocks) == 0 {
		view, err := p.Admin.Settings(v.ctx())
		if err != nil {
			return list, err
		}
		list.Enabled = view.Enabled.Value
		if v.may(admin.MaySeeSettings) && v.may(admin.MayChangeSettings) {
			list.Feature = v.path("/")
		}
		return list, nil
	}
	patrons := map[string]checkout.User{}
	if list.ShowPatrons {
		ids := make([]string, len(locks.CheckoutLocks))
		for i, l := range locks.CheckoutLocks {
			ids[i] = l.UserID
		}
		if patrons, err = p.Admin.Patrons(v.ctx(), ids); err != nil {
			return list, err
		}
	}
	mayRelease := v.may(admin.MayReleaseLocks)
	for _, l := range locks.CheckoutLocks {
		row := newLockRow(l)
		if list.ShowPatrons {
			row.Patron = patronText(l.UserID, patrons)
		}
		if mayRelease {
			row.Release = v.releasePath(l.ID)
		}
		list.Rows = append(list.Rows, row)
	}
	return list, nil
}

func newLockRow(l schemas.CheckoutLock) lockRow {
	age := max(0, l.AgeMs) // a clock may be set back
	left := max(0, int64(l.TTLMs)-age)
	if l.Outdated {
		left = 0
	}
	return lockRow{CheckoutLock: l, Patron: redact.Mask(l.UserID), Age: age, Left: left}
}

// State is the lock's in words; colour alone tells nothing.
func (r lockRow) State() string {
	if r.Outdated {
		return "Outdated – blocks nobody"
	}
	return "Held"
}

// patronText is barcode and name of a patron; who is gone has an id alone.
func patronText(id string, patrons map[string]checkout.User) string {
	u, ok := patrons[id]
	if !ok {
		return id
	}
	name := strings.Join(strings.Fields(u.Personal.FirstName+" "+u.Personal.LastName), " ")
	return strings.TrimSpace(cmp.Or(u.Barcode, "no barcode") + " " + name)
}

// summary says in words how many locks there are; it stays the same as long as the
// numbers do, since it is read out aloud.
func summary(locks schemas.CheckoutLocks) string {
	outdated := 0
	for _, l := range locks.CheckoutLocks {
		if l.Outdated {
			outdated++
		}
	}
	shown := len(locks.CheckoutLocks)
	text := plural(shown-outdated, "lock", "locks") + " held"
	if outdated > 0 {
		text += ", " + plural(outdated, "outdated", "outdated")
	}
	switch {
	case shown == 0:
		return "No locks"
	case locks.TotalRecords > shown:
		return "The oldest " + plural(shown, "lock", "locks") + " of " + plural(locks.TotalRecords, "is", "are") + " shown: " + text
	}
	return text
}
