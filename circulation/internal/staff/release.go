package staff

import (
	"net/http"
	"net/url"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/schemas/fault"
)

// The page Release: what it means to take a lock away, and why it is done.

type releasePage struct {
	Lock    lockRow
	Gone    bool   // there is no such lock any more
	Changes string // path of who changed what; empty for who may not see it
	Action  string
	Back    string
	Reason  reasonField
}

// askRelease handles GET /staff/{tenant}/locks/{lock}/release.
func (p *Pages) askRelease(v *visit) error {
	return p.showRelease(v, http.StatusOK, reasonField{})
}

func (p *Pages) showRelease(v *visit, status int, reason reasonField) error {
	lock, found, err := fault.Found(p.Admin.Lock(v.ctx(), v.Param("lock")))
	switch {
	case err != nil:
		return err
	case !found:
		return p.lockGone(v)
	}
	row := newLockRow(lock)
	if patronsAsked(v) && v.may(admin.MaySeeLocks) {
		patrons, err := p.Admin.Patrons(v.ctx(), []string{lock.UserID})
		if err != nil {
			return err
		}
		row.Patron = patronText(lock.UserID, patrons)
	}
	return v.show(status, "release.html", "/locks", "Release this lock?", releasePage{
		Lock: row, Action: v.releasePath(lock.ID), Back: v.pathWithPatrons("/locks"), Reason: reason,
	})
}

// releasePath leads to the page that asks whether to release a lock.
func (v *visit) releasePath(lockID string) string {
	return v.pathWithPatrons("/locks/" + url.PathEscape(lockID) + "/release")
}

// lockGone is the usual end of a look at a lock: most live for milliseconds. It is
// also what who sends the form twice gets, by a double click say.
func (p *Pages) lockGone(v *visit) error {
	page := releasePage{Gone: true, Back: v.pathWithPatrons("/locks")}
	if v.may(admin.MaySeeSettings) && v.may(admin.MaySeeChanges) {
		page.Changes = v.path("/")
	}
	return v.show(http.StatusNotFound, "release.html", "/locks", "The lock is gone already", page)
}

// doRelease handles POST /staff/{tenant}/locks/{lock}/release.
func (p *Pages) doRelease(v *visit) error {
	id, reason := v.Param("lock"), reasonField{Value: v.FormValue("reason")}
	if !reason.check() {
		return p.showRelease(v, http.StatusUnprocessableEntity, reason)
	}
	_, found, err := fault.Found(p.Admin.Release(v.ctx(), id, reason.Value))
	switch {
	case err != nil:
		return err
	case !found:
		return p.lockGone(v)
	}
	return v.done("/locks", "released")
}
