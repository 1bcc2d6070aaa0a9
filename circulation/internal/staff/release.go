package staff

import (
	"net/http"

	"checkoutlock/schemas/fault"
)

// The page Release: what it means to take a lock away, and why it is done.

type releasePage struct {
	Lock   lockRow
	Gone   bool // there is no such lock any more
	Action string
	Back   string
	Reason reasonField
}

// askRelease handles GET /staff/{tenant}/locks/{lock}/release.
func (p *Pages) askRelease(v *visit) error {
	return p.showRelease(v, http.StatusOK, reasonField{})
}

func (p *Pages) showRelease(v *visit, status int, reason reasonField) error {
	lock, found, err := fault.Found(p.Oversight.Lock(v.ctx(), v.Param("lock")))
	switch {
	case err != nil:
		return err
	case !found:
		return p.lockGone(v)
	}
	return v.show(status, "release.html", "/locks", "Release this lock?", releasePage{
		Lock: newLockRow(lock), Action: v.path("/locks/" + lock.ID + "/release"), Back: v.path("/locks"), Reason: reason,
	})
}

// lockGone is the usual end of a look at a lock: most live for milliseconds.
func (p *Pages) lockGone(v *visit) error {
	return v.show(http.StatusNotFound, "release.html", "/locks", "The lock is gone already", releasePage{Gone: true, Back: v.path("/locks")})
}

// doRelease handles POST /staff/{tenant}/locks/{lock}/release.
func (p *Pages) doRelease(v *visit) error {
	id, reason := v.Param("lock"), reasonField{Value: v.FormValue("reason")}
	if !reason.check() {
		return p.showRelease(v, http.StatusUnprocessableEntity, reason)
	}
	_, found, err := fault.Found(p.Oversight.Release(v.ctx(), id, reason.Value))
	switch {
	case err != nil:
		return err
	case !found:
		return p.lockGone(v)
	}
	return v.done("/locks", "released")
}
