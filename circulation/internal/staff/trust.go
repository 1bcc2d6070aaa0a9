package staff

import (
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
)

// Whether the limit holds, on the page On / off.

// trust is what shows that the limit holds.
type trust struct {
	Review        admin.LimitReview
	OnSince       string // RFC 3339; empty if it is not known
	Since         string // of the refused check-outs
	More          bool   // there are more patrons over their limit than are listed
	Patrons       []string
	ShowPatrons   bool
	TogglePatrons string // path; empty without the permission to see the patrons
}

// reviewTrust returns nil without the permission, or if it cannot be read.
func (p *pages) reviewTrust(v *visit) *trust {
	if !v.may(admin.MaySeeFigures) {
		return nil
	}
	review, err := p.admin.ReviewLimit(v.ctx())
	if err != nil {
		p.log.WarnContext(v.ctx(), "page shown without the check of the limit", "err", err)
		return nil
	}
	t := &trust{Review: review, Since: review.Since.Format(time.RFC3339), More: len(review.OverLimit) == schemas.MaxOverLimit}
	if !review.OnSince.IsZero() {
		t.OnSince = review.OnSince.Format(time.RFC3339)
	}
	if !v.may(admin.MaySeeCheckOuts) || len(review.OverLimit) == 0 {
		return t
	}
	t.ShowPatrons, t.TogglePatrons = v.showsPatrons(), v.toggleShown("/")
	name, err := p.namePatrons(v, review.OverLimit)
	if err != nil {
		p.log.WarnContext(v.ctx(), "page shown without patrons", "err", err)
	}
	t.Patrons = convert.All(review.OverLimit, name)
	return t
}
