package staff

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/redact"
	"checkoutlock/web"
	"checkoutlock/web/texts"
)

// The page Locks now: which locks are held, by which instance, and for how long.

const (
	locksShown = 100
	locksEvery = time.Second

	// The values of the parameter state. Expired locks block no check-out, so they are shown only on demand.
	stateExpired = "expired"
	stateAll     = "all"
)

type locksPage struct {
	Patron, Holder field
	State          string // stateExpired, stateAll, or empty for the held ones
	ShowPatrons    bool
	Problems       []field
	List           *locksList // nil if the filter is wrong
	All            string     // paths
	Live           string
	Refresh        string
}

// locksList is the part of the page that a stream sends again.
type locksList struct {
	Rows          []lockRow
	Slowest       []waitRow
	Summary       string
	Enabled       bool
	Filtered      bool
	ShowPatrons   bool
	TogglePatrons string // paths
	Feature       string // of the switch; empty without the permission
}

type lockRow struct {
	Lock    schemas.CheckoutLock
	Patron  string // masked unless the address asks for it
	Age     int64  // ms, never negative
	TTL     int64  // ms: after it the next check-out takes the lock over
	Left    int64  // of the TTL; ms, never negative
	Release string // path; empty without the permission
	Waits   []waitRow
}

func (p *pages) showLocks(v *visit) error {
	page, filter := readLockFilter(v)
	var err error
	if filter.UserID, page.Patron.Wrong, err = p.findPatron(v, page.Patron.Value); err != nil {
		return err
	}
	page.Problems = findProblems(page.Patron)
	status := http.StatusUnprocessableEntity
	if len(page.Problems) == 0 {
		list, err := p.listLocks(v, filter)
		_, refused := findDetail(err, "holder")
		switch {
		case refused && fault.Is(err, fault.Invalid):
			page.Holder.Wrong = v.say("locksNow.noInstance", nil)
			page.Problems = findProblems(page.Holder)
		case err != nil:
			return err
		default:
			status = http.StatusOK
			page.List = &list
		}
	}
	return v.show(status, "locks.html", "/locks", "nav.locks", page)
}

func (p *pages) streamLocks(v *visit) error {
	page, filter := readLockFilter(v)
	find := func() error { // finds the patron's id once
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
		return err // other errors may pass while the stream is open
	}
	return p.streams.Follow(v.c, v.reader, locksEvery, func() ([]byte, error) {
		if err := find(); err != nil {
			return nil, err
		}
		list, err := p.listLocks(v, filter)
		if err != nil {
			return nil, err
		}
		return p.templates.Render(v.reader, "locks.html", "live", list)
	})
}

// readLockFilter reads the query. The patron's id is missing: only storage knows it.
func readLockFilter(v *visit) (locksPage, admin.LockFilter) {
	q := web.QueryOf(v.c)
	page := locksPage{
		Patron: field{Name: "patron", Label: v.say("locksNow.patron", nil), Value: strings.TrimSpace(q.Text("patron"))},
		Holder: field{Name: "holder", Label: v.say("locksNow.holder", nil), Value: strings.TrimSpace(q.Text("holder"))},
		State:  q.Text("state"), ShowPatrons: v.showsPatrons(), All: v.keepShown("/locks"),
	}
	filter := admin.LockFilter{Holder: page.Holder.Value, Limit: locksShown}
	if page.State != stateAll {
		filter.Outdated = new(page.State == stateExpired)
	}
	same := func(url.Values) {}
	page.Live, page.Refresh = v.pathOf("/locks/live", same), v.pathOf("/locks", same)
	return page, filter
}

// findPatron returns the id of the patron with a barcode or an id; wrong says why there
// is none.
func (p *pages) findPatron(v *visit, text string) (id, wrong string, err error) {
	if text == "" || schemas.IsFolioUUID(text) {
		return text, "", nil
	}
	id, found, err := fault.Found(p.admin.PatronID(v.ctx(), text))
	switch {
	case err != nil:
		return "", "", err
	case !found:
		return "", v.say("locksNow.noPatron", nil), nil
	case !schemas.IsFolioUUID(id): // storage would refuse it
		return "", v.say("locksNow.noLockFor", nil), nil
	}
	return id, "", nil
}

func (p *pages) listLocks(v *visit, filter admin.LockFilter) (locksList, error) {
	locks, err := p.admin.Locks(v.ctx(), filter)
	if err != nil {
		return locksList{}, err
	}
	inForce, err := p.admin.Settings(v.ctx())
	if err != nil {
		return locksList{}, err
	}
	waits, err := p.listWaits(v)
	if err != nil {
		return locksList{}, err
	}
	list := locksList{
		Slowest: waits.Slowest, Summary: v.summarizeLocks(locks), Filtered: filter.UserID+filter.Holder != "" || filter.Outdated == nil || *filter.Outdated,
		ShowPatrons: v.showsPatrons(), TogglePatrons: v.toggleShown("/locks"),
	}
	if len(locks.CheckoutLocks) == 0 {
		list.Enabled = inForce.Enabled.Value
		if v.may(admin.MaySeeSettings) && v.may(admin.MayChangeSettings) {
			list.Feature = v.path("/")
		}
		return list, nil
	}
	name, err := p.namePatrons(v, convert.All(locks.CheckoutLocks, func(l schemas.CheckoutLock) string { return l.UserID }))
	if err != nil {
		return list, err
	}
	mayRelease := v.may(admin.MayReleaseLocks)
	for _, l := range locks.CheckoutLocks {
		row := newLockRow(l, inForce)
		row.Patron, row.Waits = name(l.UserID), waits.byPatron[l.UserID]
		if mayRelease {
			row.Release = v.releasePath(l.ID)
		}
		list.Rows = append(list.Rows, row)
	}
	return list, nil
}

// newLockRow describes a lock while these settings are in force. A check-out takes over a
// lock that is older than the lock's own TTL, or than the one in force.
func newLockRow(l schemas.CheckoutLock, inForce settings.View) lockRow {
	age := max(0, l.AgeMs) // a clock may be set back
	ttl := int64(min(l.TTLMs, inForce.LockTTLMs.Value))
	return lockRow{Lock: l, Patron: redact.Mask(l.UserID), Age: age, TTL: ttl, Left: max(0, ttl-age)}
}

// State names the lock's state, because colour alone is not accessible.
func (r lockRow) State() texts.Code {
	switch {
	case r.Lock.Outdated:
		return "locksNow.expired"
	case r.Left == 0:
		return "locksNow.heldOver"
	}
	return "locksNow.held"
}

// namePatrons returns how the page writes these patrons: masked unless the address asks for them.
func (p *pages) namePatrons(v *visit, ids []string) (func(id string) string, error) {
	if !v.showsPatrons() {
		return redact.Mask, nil
	}
	patrons, err := p.admin.Patrons(v.ctx(), ids)
	return func(id string) string { return v.formatPatron(id, patrons) }, err
}

// formatPatron writes a patron's barcode, and the name if the visitor may read names. It writes the id if
// the record is gone.
func (v *visit) formatPatron(id string, patrons map[string]library.User) string {
	u, ok := patrons[id]
	if !ok {
		return id
	}
	name := ""
	if v.may(admin.MaySeePatrons) {
		name = strings.Join(strings.Fields(u.Personal.FirstName+" "+u.Personal.LastName), " ")
	}
	return strings.TrimSpace(cmp.Or(u.Barcode, v.say("patrons.noBarcode", nil)) + " " + name)
}

// summarizeLocks counts the locks in words. The text changes only if a number changes,
// because screen readers read each change aloud.
func (v *visit) summarizeLocks(locks schemas.CheckoutLocks) string {
	outdated := 0
	for _, l := range locks.CheckoutLocks {
		if l.Outdated {
			outdated++
		}
	}
	shown := len(locks.CheckoutLocks)
	held := v.count("locksNow.countHeld", shown-outdated)
	if outdated > 0 {
		held = v.say("locksNow.countBoth", texts.Values{"held": held, "count": strconv.Itoa(outdated)})
	}
	switch {
	case shown == 0:
		return v.say("locksNow.countNone", nil)
	case locks.TotalRecords > shown:
		return v.say("locksNow.countOldest", texts.Values{"count": strconv.Itoa(shown), "total": strconv.Itoa(locks.TotalRecords), "held": held})
	}
	return held
}
