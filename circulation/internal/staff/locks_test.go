package staff_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web/auth"
)

func TestLocksPage_ListsLocks(t *testing.T) {
	t.Parallel()
	l := &library{Admin: &backend{locks: []schemas.CheckoutLock{held(), outdated()}}}
	p := visit(t, l).get(t, "/staff/diku/locks")
	p.want(t, http.StatusOK,
		"1 lock held, 1 expired",
		"****1234 Held 500 ms 2.5 s circulation-1 req-17/c Copy 0bab56e5 Copy Release …",
		"****5678 Expired – blocks no check-out 1 min 15 s none an unnamed instance – 6cf5ab4b Copy Release …",
		"Patrons are masked. Show the patrons")
	p.has(t,
		`<tr id="lock-`+heldID+`">`, `data-copy="`+heldID+
			`"`, `data-copy="req-17/circulation"`, `title="req-17/circulation"`, `<progress max="3000" value="2500"`,
		`<progress max="3000" value="0"`,
		`href="/staff/diku/locks/`+heldID+`/release"`, `data-stream="/staff/diku/locks/live"`, `data-live="empty" hidden>`)
	p.lacks(t, annID, benID, "Ahrens", held().AcquisitionID, "patrons=shown\">Release", "No lock is held now.",
		"The check-out lock is off")
}

func TestLocksPage_ShowsPatronsOnRequest(t *testing.T) {
	t.Parallel()
	l := &library{Admin: &backend{locks: []schemas.CheckoutLock{held(), outdated()}}}
	p := visit(t, l).get(t, "/staff/diku/locks?holder=circulation-1&patrons=shown")
	p.want(t, http.StatusOK, "ann<1> Ann Ahrens Held", benID+" Expired", "Mask the patrons")
	p.has(t, "ann&lt;1&gt;", `href="/staff/diku/locks?holder=circulation-1"`,
		`href="/staff/diku/locks?patrons=shown">Show all`,
		`href="/staff/diku/locks/`+heldID+`/release?patrons=shown"`, `<input type="hidden" name="patrons" value="shown">`,
		`data-stream="/staff/diku/locks/live?holder=circulation-1&amp;patrons=shown"`)
	p.lacks(t, "<1>Ann")
}

func TestLocksPage_DoesNotLookUpMaskedPatrons(t *testing.T) {
	t.Parallel()
	d := &backend{locks: []schemas.CheckoutLock{held()}}
	visit(t, &library{Admin: d}).get(t, "/staff/diku/locks")
	if d.lookups != 0 {
		t.Errorf("patrons were looked up %d times, want never", d.lookups)
	}
}

func TestLocksPage_Filters(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for query, want := range map[string]admin.LockFilter{
		"":                                  {Outdated: &no},
		"patron=+" + annID + "+":            {UserID: annID, Outdated: &no},
		"patron=ann%3C1%3E":                 {UserID: annID, Outdated: &no},
		"holder=circulation-1":              {Holder: "circulation-1", Outdated: &no},
		"state=all":                         {},
		"state=expired&patron=ann%3C1%3E":   {UserID: annID, Outdated: &yes},
		"state=&patron=&holder=&patrons=no": {Outdated: &no},
	} {
		d := &backend{}
		p := visit(t, &library{Admin: d, view: own(true, 3000)}).get(t, "/staff/diku/locks?"+query)
		got := d.asked
		if got.UserID != want.UserID || got.Holder != want.Holder || got.Limit != 100 || got.Offset != 0 ||
			(got.Outdated == nil) != (want.Outdated == nil) || got.Outdated != nil && *got.Outdated != *want.Outdated {
			t.Errorf("%s: asked for %+v, want %+v", query, got, want)
		}
		empty := "No lock is held now."
		if want != (admin.LockFilter{Outdated: &no}) {
			empty = "No lock is like this now."
		}
		p.want(t, http.StatusOK, empty)
	}
}

func TestLocksPage_RefusesAnInvalidFilterAtItsField(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		query string
		err   error
		words string
		field string
	}{
		"no id of a patron": {query: "patron=" + newID, words: "No patron has this barcode.", field: `id="patron-error"`},
		"no such patron": {
			query: "patron=%3Cb%3Eunknown", words: "No patron has this barcode.",
			field: `id="patron" name="patron" value="&lt;b&gt;unknown"`,
		},
		"of another kind": {
			query: "patron=new", words: "This patron's id is of a kind that no lock can have.", field: `id="patron-error"`,
		},
		"no such holder": {
			query: "holder=x%00", err: refused("holder"), words: "No instance can have this name.", field: `id="holder-error"`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &backend{err: tt.err}
			v := visit(t, &library{Admin: d})
			p := v.get(t, "/staff/diku/locks?"+tt.query)
			p.want(t, http.StatusUnprocessableEntity, tt.words)
			p.has(t, tt.field, `aria-invalid="true"`)
			p.lacks(t, "data-stream", "<table")
		})
	}
	p := visit(t, &library{Admin: &backend{}}).get(t, "/staff/diku/locks?state=broken")
	p.want(t, http.StatusBadRequest, "Locks are held or expired, not broken")
}

// refused is what a filter gets that has a wrong parameter.
func refused(name string) error {
	return fault.Validation(fault.Detail{
		Message: name + " is wrong", Parameters: []fault.Parameter{fault.Param(name, "x")},
	})
}

func TestLocksPage_BlamesTheHolderOnlyForItsOwnFault(t *testing.T) {
	t.Parallel()
	p := visit(t, &library{Admin: &backend{err: refused("userId")}}).get(t, "/staff/diku/locks?holder=x")
	p.want(t, http.StatusUnprocessableEntity, "That cannot be done", "userId is wrong")
	p.lacks(t, "No instance can have this name.")
}

func TestLocksPage_RefusesAStreamOfAnUnknownPatron(t *testing.T) {
	t.Parallel()
	for patron, words := range map[string]string{"unknown": "No patron has this barcode.", "new": "no lock can have"} {
		d := &backend{}
		p := visit(t, &library{Admin: d}).get(t, "/staff/diku/locks/live?patron="+patron)
		p.want(t, http.StatusUnprocessableEntity, words)
		if d.lists != 0 {
			t.Error("locks were listed although the patron is unknown")
		}
	}
}

func TestLocksPage_ExplainsAnEmptyList(t *testing.T) {
	t.Parallel()
	for enabled, words := range map[bool]string{
		true: "That is normal", false: "The check-out lock is off for this library",
	} {
		p := visit(t, &library{Admin: &backend{}, view: own(enabled, 3000)}).get(t, "/staff/diku/locks")
		p.want(t, http.StatusOK, "No locks", words)
		p.has(t, `data-live="table" data-shell hidden>`, `data-live="empty">`, `data-live="patrons" hidden>`,
			`<p role="status" data-live="summary"><span class="unseen">No locks</span></p>`)
		if offered := strings.Contains(p.text, "You can turn it on under On / off"); offered == enabled {
			t.Errorf("with the lock on %t, turning it on is offered: %t", enabled, offered)
		}
	}
	for _, permission := range []string{admin.MaySeeSettings, admin.MayReleaseLocks} {
		v := visitAs(t, &library{Admin: &backend{}, view: own(false, 3000)}, auth.Gateway,
			granted(admin.MaySeeLocks, permission))
		p := v.get(t, "/staff/diku/locks")
		p.want(t, http.StatusOK, "so no check-out takes a lock.")
		p.lacks(t, "You can turn it on")
	}
}

func TestLocksPage_SaysHowMuchOfALongListIsShown(t *testing.T) {
	t.Parallel()
	locks := slices.Repeat([]schemas.CheckoutLock{held()}, 1)
	p := visit(t, &library{Admin: &backend{locks: locks, total: 240}}).get(t, "/staff/diku/locks")
	p.want(t, http.StatusOK, "The oldest 1 lock of 240 are shown: 1 lock held")
}

func TestLocksPage_ShowsNoNegativeAge(t *testing.T) {
	t.Parallel()
	l := held()
	l.AgeMs = -40
	p := visit(t, &library{Admin: &backend{locks: []schemas.CheckoutLock{l}}}).get(t, "/staff/diku/locks")
	p.want(t, http.StatusOK, "Held 0 ms 3 s")
	l.AgeMs = 9000 // not yet marked as outdated
	p = visit(t, &library{Admin: &backend{locks: []schemas.CheckoutLock{l}}}).get(t, "/staff/diku/locks")
	p.want(t, http.StatusOK, "Held – the next check-out takes it over 9 s none")
}

// A newcomer takes a lock over that is older than the newcomer's own TTL.
func TestLocksPage_CountsTheTTLInForce(t *testing.T) {
	t.Parallel()
	const takenOver = "Held – the next check-out takes it over"
	for _, tt := range []struct {
		name     string
		inForce  int // the TTL in milliseconds
		state    string
		left     string
		progress string
	}{
		{name: "longer", inForce: 9000, state: "Held", left: "2.5 s", progress: `max="3000" value="2500"`},
		{name: "shorter", inForce: 2000, state: "Held", left: "1.5 s", progress: `max="2000" value="1500"`},
		{name: "over", inForce: 250, state: takenOver, left: "none", progress: `max="250" value="0"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := visit(t, &library{Admin: &backend{locks: []schemas.CheckoutLock{held()}}, view: own(true, tt.inForce)})
			p := v.get(t, "/staff/diku/locks")
			p.want(t, http.StatusOK, "****1234 "+tt.state+" 500 ms "+tt.left+" circulation-1")
			p.has(t, "<progress "+tt.progress)
			v.get(t, "/staff/diku/locks/"+heldID+"/release").want(t, http.StatusOK, "State "+tt.state+" Held for 500 ms")
		})
	}
}

func TestLocksPage_EscapesText(t *testing.T) {
	t.Parallel()
	l := held()
	l.Holder, l.OkapiRequestID = `<script>x</script>`, `"><img src=x>`
	p := visit(t, &library{
		Admin: &backend{locks: []schemas.CheckoutLock{l}},
	}).get(t, "/staff/diku/locks?holder="+url.QueryEscape(`"><b>`))
	p.want(t, http.StatusOK, "<script>x</script>")
	if strings.Contains(p.html, "<script>x") || strings.Contains(p.html, "<img") || strings.Contains(p.html, "<b>") {
		t.Errorf("got\n%s", p.html)
	}
}

func TestLocksPage_LinksReleasesWithThePermissionOnly(t *testing.T) {
	t.Parallel()
	header := http.Header{"X-Okapi-Tenant": {"diku"}, "X-Okapi-Permissions": {`["` + admin.MaySeeLocks + `"]`}}
	v := visitAs(t, &library{Admin: &backend{locks: []schemas.CheckoutLock{held()}}}, auth.Gateway, header)
	p := v.get(t, "/staff/diku/locks")
	p.want(t, http.StatusOK, "1 lock held")
	p.lacks(t, "/release", "Release …")
	v.get(t, "/staff/diku/locks/"+heldID+"/release").want(t, http.StatusForbidden, admin.MayReleaseLocks)
}

func TestLocksPage_ShowsWhoWaits(t *testing.T) {
	t.Parallel()
	const deskID = "9d1b77e8-f02e-4b7f-b296-3f2042ddac54"
	d := &backend{locks: []schemas.CheckoutLock{held()}, waits: schemas.LockWaits{
		Waiting: []schemas.LockWait{
			{UserID: annID, RequestID: "req-18/circulation", WaitedMs: 2000, Instance: "circulation-2"},
			{UserID: annID, ServicePointID: deskID, Machine: "kiosk-1", WaitedMs: 1000},
			{UserID: benID, WaitedMs: 1000, Instance: "of another lock"},
		},
		Slowest: []schemas.PastCheckOut{
			{Outcome: "lent", WaitMs: new(1800), RequestID: "req-9", Instance: "circulation-3"},
			{Outcome: "lent", WaitMs: new(900), Date: "no date", ServicePointID: "Annex"},
			{Outcome: "lent", WaitMs: new(800), Machine: "kiosk-2"},
		},
	}}
	l := &library{Admin: d, names: admin.Names{ServicePoints: map[string]string{deskID: "Front desk"}}}
	p := visit(t, l).get(t, "/staff/diku/locks")
	p.want(t, http.StatusOK, "2 check-outs wait for this lock:", "at circulation-2, request req-18/c",
		"machine Front desk (kiosk-1), at an unnamed instance", "The longest waits of the last five minutes",
		"1.8 s Lent – circulation-3 req-9", "900 ms no date Lent Annex –", "800 ms Lent kiosk-2 –")
	p.has(t, `<tr id="waits-`+heldID+`">`)
	p.lacks(t, "of another lock")
	v := visitAs(t, &library{Admin: d}, auth.Gateway, granted(admin.MaySeeLocks))
	p = v.get(t, "/staff/diku/locks")
	p.want(t, http.StatusOK, "2 check-outs wait")
	p.lacks(t, "longest waits")
}
