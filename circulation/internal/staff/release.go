package staff

import (
	"net/http"
	"net/url"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/schemas/fault"
	"checkoutlock/web/page"
)

// The page Release: it explains a forced release and asks for the reason.

type releasePage struct {
	Row     lockRow
	Gone    bool   // the lock does not exist any more
	Changes string // path of who changed what; empty without the permission
	Action  string
	Back    string
	Reason  page.Reason
}

func (p *pages) askRelease(v *visit) error {
	return p.showRelease(v, http.StatusOK, page.Reason{})
}

func (p *pages) showRelease(v *visit, status int, reason page.Reason) error {
	lock, found, err := fault.Found(p.admin.Lock(v.ctx(), v.c.Param("lock")))
	switch {
	case err != nil:
		return err
	case !found:
		return p.showGone(v)
	}
	inForce, err := p.admin.Settings(v.ctx())
	if err != nil {
		return err
	}
	row := newLockRow(lock, inForce)
	if v.may(admin.MaySeeLocks) {
		name, err := p.namePatrons(v, []string{lock.UserID})
		if err != nil {
			return err
		}
		row.Patron = name(lock.UserID)
	}
	return v.show(status, "release.html", "/locks", "releaseLock.heading", releasePage{
		Row: row, Action: v.releasePath(lock.ID), Back: v.keepShown("/locks"), Reason: reason,
	})
}

// releasePath is the address of the page that releases a lock.
func (v *visit) releasePath(lockID string) string {
	return v.keepShown("/locks/" + url.PathEscape(lockID) + "/release")
}

// showGone says that the lock does not exist any more. This is common, because most
// locks live for milliseconds. A form that is sent twice gets this answer too.
func (p *pages) showGone(v *visit) error {
	page := releasePage{Gone: true, Back: v.keepShown("/locks")}
	if v.may(admin.MaySeeSettings) && v.may(admin.MaySeeChanges) {
		page.Changes = v.path("/")
	}
	return v.show(http.StatusNotFound, "release.html", "/locks", "releaseLock.gone", page)
}

func (p *pages) releaseLock(v *visit) error {
	id, reason := v.c.Param("lock"), page.Reason{Value: v.c.FormValue("reason")}
	why, usable := checkReason(&reason)
	if !usable {
		return p.showRelease(v, http.StatusUnprocessableEntity, reason)
	}
	_, found, err := fault.Found(p.admin.Release(v.ctx(), id, why))
	switch {
	case err != nil:
		return err
	case !found:
		return p.showGone(v)
	}
	return v.redirectDone("/locks", "released")
}
