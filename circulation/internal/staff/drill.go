package staff

import (
	"cmp"
	"net/http"

	"checkoutlock/circulation/internal/drill"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
	"checkoutlock/web/page"
	"checkoutlock/web/texts"
)

// The page Drill: what the lock does, tried in a library of its own.

type drillPage struct {
	Action           string
	Tenant           string // of drills
	Limit, CheckOuts int
	Problem          texts.Code // why there is no result
	Result           *drillResult
}

// drillResult is a drill in the words of the page.
type drillResult struct {
	drill.Result
	OffBeyond int  // how many more than the limit were lent without the lock
	OffLuck   bool // without the lock, as many were lent as the limit allows, and none failed
	Held      bool // the limit held with the lock
	Whole     bool // with the lock, as many were lent as the limit allows
	Columns   []drillColumn
}

// drillColumn is one round.
type drillColumn struct {
	On bool
	drill.Round
}

func (p *pages) newDrillPage(v *visit) (drillPage, error) {
	if p.drills == nil {
		return drillPage{}, page.Refuse(fault.NotFound, "drill.none", nil)
	}
	return drillPage{Action: v.path("/drill"), Tenant: drill.Tenant, Limit: drill.Limit, CheckOuts: drill.CheckOuts}, nil
}

// showDrill handles GET /staff/{tenant}/drill: what a drill does.
func (p *pages) showDrill(v *visit) error {
	page, err := p.newDrillPage(v)
	if err != nil {
		return err
	}
	return v.show(http.StatusOK, "drill.html", "/", "drill.title", page)
}

// drillProblems are the faults of a drill that the page shows.
var drillProblems = map[fault.Code]texts.Code{fault.TooManyTries: "drill.tooSoon", fault.Conflict: "drill.disturbed"}

// runDrill handles POST /staff/{tenant}/drill. It answers with the result and no redirect: another
// instance does not have it.
func (p *pages) runDrill(v *visit) error {
	page, err := p.newDrillPage(v)
	if err != nil {
		return err
	}
	r, err := p.drills.Run(v.ctx())
	if err == nil {
		page.Result = &drillResult{
			Result: r, OffBeyond: max(0, r.Off.Lent-drill.Limit), OffLuck: r.Off.Lent == drill.Limit && r.Off.Failed == 0,
			Held: r.On.Lent <= drill.Limit, Whole: r.On.Lent == drill.Limit,
			Columns: []drillColumn{{Round: r.Off}, {On: true, Round: r.On}},
		}
		v.results = true
		return v.show(http.StatusOK, "drill.html", "/", "drill.title", page)
	}
	code := web.ToFault(err).Code
	if page.Problem = drillProblems[code]; page.Problem == "" {
		return err
	}
	v.c.Response().Header().Set(fault.Header, string(code))
	return cmp.Or(v.show(fault.Status(code), "drill.html", "/", "drill.title", page), err) // err is for the log
}
