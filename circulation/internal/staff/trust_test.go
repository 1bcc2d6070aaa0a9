package staff_test

import (
	"slices"
	"testing"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/schemas"
	"checkoutlock/web/auth"
)

func TestFeaturePage_ShowsWhetherTheLimitHolds(t *testing.T) {
	t.Parallel()
	on := time.Date(2026, 8, 22, 14, 3, 0, 0, time.Local)
	l := &library{Admin: &backend{}, view: own(true, 3000), review: admin.LimitReview{
		OnSince: on, Since: on, LimitCheck: schemas.LimitCheck{
			LimitReached: 12, OverLimit: []string{}, Instances: []schemas.ReportingInstance{
				{Instance: "circulation-1", Version: "1.2.3", Date: "2026-08-22T14:03:00.000+00:00"},
				{Instance: "circulation-2", Date: "2026-08-22T14:03:00.000+00:00"},
			},
		},
	}}
	p := visit(t, l).get(t, "/staff/diku/")
	p.want(t, 200, "The lock is on since 22 Aug 2026, 14:03:00",
		"Refused at the limit since 22 Aug 2026, 14:03:00", " 12 ", "Patrons over their limit now 0",
		"2 instances lend in this library", "circulation-1 1.2.3", "circulation-2 an earlier one")
	p.lacks(t, "No patron should be", "Show the patrons")

	l.review.OnSince, l.review.OverLimit = time.Time{}, []string{annID}
	v := visit(t, l)
	p = v.get(t, "/staff/diku/")
	p.want(t, 200, "Patrons over their limit now 1", "No patron should be over the limit", "****1234", "Show the patrons")
	p.lacks(t, "is on since", annID)
	v.get(t, "/staff/diku/?patrons=shown").want(t, 200, "ann<1> Ann Ahrens", "Mask the patrons")
	v = visitAs(t, l, auth.Gateway, granted(admin.MaySeeSettings, admin.MaySeeFigures))
	p = v.get(t, "/staff/diku/?patrons=shown")
	p.want(t, 200, "Patrons over their limit now 1")
	p.lacks(t, "Ahrens", "****1234")
	visitAs(t, l, auth.Gateway, granted(admin.MaySeeSettings)).get(t, "/staff/diku/").lacks(t, "Patrons over")

	l.review.OverLimit = slices.Repeat([]string{annID}, schemas.MaxOverLimit)
	visit(t, l).get(t, "/staff/diku/").want(t, 200, "Patrons over their limit now 100 or more")
}

func TestFeaturePage_ListsMachinesWithUnknownServicePoints(t *testing.T) {
	t.Parallel()
	l := &library{Admin: &backend{}, view: own(true, 3000)}
	visit(t, l).get(t, "/staff/diku/").lacks(t, "unknown service point")
	l.review.UnknownPlaces = []schemas.UnknownPlace{
		{ServicePointID: annID, Machine: "10.1.4.27", CheckOuts: 12, Date: "2026-08-22T14:03:00.000+00:00"},
	}
	visit(t, l).get(t, "/staff/diku/").want(t, 200, "1 machine sends an unknown service point", "10.1.4.27 "+annID+" 12")
	visitAs(t, l, auth.Gateway, granted(admin.MaySeeSettings)).get(t, "/staff/diku/").lacks(t, "10.1.4.27")
}
