package staff_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web/auth"
)

const (
	releasePath = "/staff/diku/locks/" + heldID + "/release"
	goneText    = "The lock is gone already It was released or taken over. Nothing was done. If you have just released " +
		"it yourself, that is done"
)

func TestReleasePage_ExplainsTheRelease(t *testing.T) {
	t.Parallel()
	d := &backend{locks: []schemas.CheckoutLock{held(), outdated()}}
	v := visit(t, &library{Admin: d})
	p := v.get(t, releasePath)
	p.want(t, http.StatusOK, "Patron ****1234", "State Held", "Held for 500 ms", "Held by circulation-1",
		"Request req-17/circulation", "Lock "+heldID,
		"Why it is safe", "it is refused. If its machine still waits, it takes the lock again and counts the loans again; "+
			"otherwise it shows “unable to acquire lock”.", "gets the lock at once", "is finished first", "Release the lock",
		"Cancel")
	p.lacks(t, annID, "need not be released", "patrons=", held().AcquisitionID)
	if d.lookups != 0 {
		t.Errorf("patrons were looked up %d times, want never", d.lookups)
	}
	p = v.get(t, strings.Replace(releasePath, heldID, outdatedID, 1))
	p.want(t, http.StatusOK, "Expired – blocks no check-out", "need not be released")
	if len(d.released) != 0 {
		t.Errorf("looking released %v", d.released)
	}
}

func TestReleasePage_NamesThePatronOnRequest(t *testing.T) {
	t.Parallel()
	d := &backend{locks: []schemas.CheckoutLock{held()}}
	v := visit(t, &library{Admin: d, view: own(true, 3000)})
	p := v.get(t, releasePath+"?patrons=shown")
	p.want(t, http.StatusOK, "Patron ann<1> Ann Ahrens State")
	p.has(t, `action="`+releasePath+`?patrons=shown"`, `href="/staff/diku/locks?patrons=shown">Cancel`)
	p = v.post(t, releasePath+"?patrons=shown", url.Values{"reason": {""}})
	p.want(t, http.StatusUnprocessableEntity, "ann<1> Ann Ahrens")
	p = v.post(t, releasePath+"?patrons=shown", url.Values{"reason": {"stuck"}})
	const want = "/staff/diku/locks?done=released&patrons=shown"
	if got := p.header.Get("Location"); p.status != http.StatusSeeOther || got != want {
		t.Errorf("got %d, Location %q, want %q", p.status, got, want)
	}
	d.refusal = fault.New(fault.NotFound, "Not found")
	p = v.post(t, releasePath+"?patrons=shown", url.Values{"reason": {"stuck"}})
	p.want(t, http.StatusNotFound, goneText)
	p.has(t, `href="/staff/diku/locks?patrons=shown">Back`)
}

func TestReleasePage_LinksTheFirstReleaseAfterASecond(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		permissions []string
		linked      bool
	}{
		"with the changes":   {[]string{admin.MaySeeSettings, admin.MaySeeChanges}, true},
		"without them":       {[]string{admin.MaySeeSettings}, false},
		"without the page":   {[]string{admin.MaySeeChanges}, false},
		"with releases only": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &backend{refusal: fault.New(fault.NotFound, "Not found")}
			v := visitAs(t, &library{Admin: d}, auth.Gateway, granted(append(tt.permissions, admin.MayReleaseLocks)...))
			v.get(t, releasePath)
			p := v.post(t, releasePath, url.Values{"reason": {"stuck"}})
			p.want(t, http.StatusNotFound, goneText, "Back to the live locks")
			if linked := strings.Contains(p.text, "that is done: see On / off , Who changed what."); linked != tt.linked {
				t.Errorf("links the changes: %t, want %t:\n%s", linked, tt.linked, p.text)
			}
		})
	}
}

func TestReleasePage_HidesThePatronWithoutThePermission(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		permissions []string
		shown       bool
	}{
		"with the locks": {[]string{admin.MaySeeLocks}, true},
		"without them":   {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &backend{locks: []schemas.CheckoutLock{held()}}
			v := visitAs(t, &library{Admin: d}, auth.Gateway, granted(append(tt.permissions, admin.MayReleaseLocks)...))
			p := v.get(t, releasePath+"?patrons=shown")
			p.want(t, http.StatusOK, "Release this lock?")
			if masked := strings.Contains(p.text, "****1234"); masked == tt.shown {
				t.Errorf("the patron is masked: %t, want %t:\n%s", masked, !tt.shown, p.text)
			}
		})
	}
}

func TestPages_NamePatronsWithThePermissionOnly(t *testing.T) {
	t.Parallel()
	l := &library{
		Admin: &backend{locks: []schemas.CheckoutLock{held()}}, view: own(true, 3000),
		review: admin.LimitReview{LimitCheck: schemas.LimitCheck{OverLimit: []string{annID}}},
	}
	permissions := []string{
		admin.MaySeeSettings, admin.MaySeeFigures, admin.MaySeeCheckOuts, admin.MaySeeLocks, admin.MayReleaseLocks,
	}
	without := visitAs(t, l, auth.Gateway, granted(permissions...))
	with := visitAs(t, l, auth.Gateway, granted(append(permissions, admin.MaySeePatrons)...))
	for _, path := range []string{"/staff/diku/", "/staff/diku/locks", releasePath} {
		with.get(t, path+"?patrons=shown").want(t, http.StatusOK, "ann<1> Ann Ahrens")
		p := without.get(t, path+"?patrons=shown")
		p.want(t, http.StatusOK, "ann<1>")
		p.lacks(t, "Ahrens")
	}
	for _, sees := range [][]string{{admin.MaySeeFigures}, nil} { // without the permission for check-outs
		p := visitAs(t, l, auth.Gateway, granted(append(sees, admin.MaySeeSettings)...)).get(t, "/staff/diku/?patrons=shown")
		p.want(t, http.StatusOK, "The lock is on")
		p.lacks(t, "ann<1>", "****1234")
		if has := strings.Contains(p.text, "Right now and in the last hour"); has != (sees != nil) {
			t.Errorf("the page has figures: %t, with the permissions %q", has, sees)
		}
	}
}

func TestReleasePage_ReleasesWithAReason(t *testing.T) {
	t.Parallel()
	d := &backend{locks: []schemas.CheckoutLock{held()}}
	v := visit(t, &library{Admin: d, view: own(true, 3000)})
	v.get(t, releasePath)
	p := v.post(t, releasePath, url.Values{"reason": {"the machine hangs"}})
	if got, want := p.header.Get("Location"), "/staff/diku/locks?done=released"; p.status != http.StatusSeeOther ||
		got != want {
		t.Errorf("got %d, Location %q, want %d and %q", p.status, got, http.StatusSeeOther, want)
	}
	if got, want := strings.Join(d.released, "; "), heldID+" the machine hangs"; got != want {
		t.Errorf("released %q, want %q", got, want)
	}
	p = v.get(t, "/staff/diku/locks?done=released")
	p.want(t, http.StatusOK, "The lock was released.")
	p.lacks(t, "live?done=") // a list that follows has no note
}

func TestReleasePage_AcceptsAReasonOfSeveralLines(t *testing.T) {
	t.Parallel()
	d := &backend{locks: []schemas.CheckoutLock{held()}}
	v := visit(t, &library{Admin: d})
	v.get(t, releasePath)
	// Browsers send each line break, which is one character in the field, as two.
	reason := strings.Repeat("x\r\n", schemas.MaxChangeReason/2-1) + "xx"
	if p := v.post(t, releasePath, url.Values{"reason": {reason}}); p.status != http.StatusSeeOther ||
		len(d.released) != 1 {
		t.Errorf("got %d and %d releases, want %d and 1", p.status, len(d.released), http.StatusSeeOther)
	}
}

func TestReleasePage_NeedsAReason(t *testing.T) {
	t.Parallel()
	for reason, words := range map[string]string{
		"":     "Say why, in a few words",
		" \n ": "Say why, in a few words",
		strings.Repeat("é", schemas.MaxChangeReason+1):       "The reason must have at most 500 characters",
		"<i>" + strings.Repeat("x", schemas.MaxChangeReason): "The reason must have at most 500 characters",
		"a\x07b": "The reason must have no control characters",
		"a\x0bb" + strings.Repeat("\r\nx", schemas.MaxChangeReason/2-2): "The reason must have no control characters",
		"é" + strings.Repeat("\r\n", 9) + strings.Repeat("x", 500):      "at most 500 characters, not 510",
	} {
		d := &backend{locks: []schemas.CheckoutLock{held()}}
		v := visit(t, &library{Admin: d})
		v.get(t, releasePath)
		p := v.post(t, releasePath, url.Values{"reason": {reason}})
		p.want(t, http.StatusUnprocessableEntity, words, "Release this lock?", "****1234")
		p.has(t, `aria-invalid="true" autofocus`)
		if strings.Contains(p.html, "<i>") {
			t.Error("what was typed is not written as text")
		}
		if len(d.released) != 0 {
			t.Errorf("released %v", d.released)
		}
	}
}

func TestReleasePage_SaysThatTheLockIsGone(t *testing.T) {
	t.Parallel()
	v := visit(t, &library{Admin: &backend{refusal: fault.New(fault.NotFound, "Not found")}})
	for _, id := range []string{heldID, "no-id", "%2e%2e"} {
		path := "/staff/diku/locks/" + id + "/release"
		v.get(t, path).want(t, http.StatusNotFound, goneText)
		v.post(t, path, url.Values{"reason": {"stuck"}}).want(t, http.StatusNotFound, goneText)
		v.post(t, path, url.Values{"reason": {""}}).want(t, http.StatusNotFound, goneText)
	}
}

func TestReleasePage_SaysThatTheReleaseFailed(t *testing.T) {
	t.Parallel()
	d := &backend{locks: []schemas.CheckoutLock{held()}, refusal: fault.New(fault.Unavailable, "Storage was not reached")}
	v := visit(t, &library{Admin: d})
	v.get(t, releasePath)
	p := v.post(t, releasePath, url.Values{"reason": {"stuck"}})
	p.want(t, http.StatusServiceUnavailable, "Storage was not reached")
}

func TestReleasePage_NeedsTheToken(t *testing.T) {
	t.Parallel()
	d := &backend{locks: []schemas.CheckoutLock{held()}}
	v := visit(t, &library{Admin: d})
	v.get(t, releasePath)
	v.postBare(t, releasePath, url.Values{"reason": {"stuck"}}).want(t, http.StatusForbidden, "Nothing was changed")
	if len(d.released) != 0 {
		t.Errorf("released %v", d.released)
	}
}
