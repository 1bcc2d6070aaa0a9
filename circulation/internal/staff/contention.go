package staff

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// The page Waiting times: how much check-outs waited for each other in the last hour.

// figureMinutes is how far back the figures go.
const figureMinutes = 60

type contentionPage struct {
	Live    string // paths
	Refresh string
	Shown   shownFigures
}

// shownFigures is the part of the page that a stream sends again.
type shownFigures struct {
	Figures   schemas.Figures
	Newest    []schemas.FigureMinute // the minutes in the order of the tables
	CheckOuts countChart
	Waits     waitChart
	Causes    causeChart
}

type countChart struct {
	Plot          plot
	Summary       string
	Lent, NotLent []bar
}

type waitChart struct {
	Plot     plot
	Summary  string
	P50, P95 string // paths of an SVG
}

type causeChart struct {
	Summary string
	Most    int // how often the most frequent cause came
}

func (p *pages) showContention(v *visit) error {
	f, err := p.admin.Figures(v.ctx(), figureMinutes)
	if err != nil {
		return err
	}
	return v.show(http.StatusOK, "contention.html", "/contention", "Waiting times", contentionPage{
		Live: v.path("/contention/live"), Refresh: v.path("/contention"), Shown: drawFigures(f),
	})
}

func (p *pages) streamContention(v *visit) error {
	return p.stream(v, admin.FiguresAge, func() ([]byte, error) {
		f, err := p.admin.Figures(v.ctx(), figureMinutes)
		if err != nil {
			return nil, err
		}
		return p.templates.Render("contention.html", "figures", drawFigures(f))
	})
}

func drawFigures(f schemas.Figures) shownFigures {
	dates := make([]string, len(f.Minutes))
	for i, m := range f.Minutes {
		dates[i] = m.Date
	}
	shown := shownFigures{
		Figures: f, Newest: slices.Clone(f.Minutes),
		CheckOuts: drawCounts(f, dates), Waits: drawWaits(f, dates), Causes: drawCauses(f.Causes),
	}
	slices.Reverse(shown.Newest)
	return shown
}

func drawCounts(f schemas.Figures, dates []string) countChart {
	lent, not := make([]int, len(f.Minutes)), make([]int, len(f.Minutes))
	var busiest schemas.FigureMinute
	for i, m := range f.Minutes {
		lent[i], not[i] = m.Lent, m.CheckOuts-m.Lent
		if m.CheckOuts > busiest.CheckOuts {
			busiest = m
		}
	}
	var c countChart
	var top float64
	c.Plot, top = newPlot(dates, float64(busiest.CheckOuts), formatCount)
	if c.Plot.Empty = busiest.CheckOuts == 0; c.Plot.Empty {
		return c
	}
	c.Lent, c.NotLent = stackBars(lent, not, top)
	c.Summary = fmt.Sprintf("%s in the last hour, %d lent and %d not. Most in one minute: %d at %s.",
		plural(f.Total.CheckOuts, "check-out", "check-outs"), f.Total.Lent, f.Total.CheckOuts-f.Total.Lent,
		busiest.CheckOuts, formatClock(busiest.Date))
	return c
}

func drawWaits(f schemas.Figures, dates []string) waitChart {
	p50, p95 := make([]*int, len(f.Minutes)), make([]*int, len(f.Minutes))
	longest, date := 0, ""
	for i, m := range f.Minutes {
		p50[i], p95[i] = m.WaitP50Ms, m.WaitP95Ms
		if m.WaitP95Ms != nil && (date == "" || *m.WaitP95Ms > longest) {
			longest, date = *m.WaitP95Ms, m.Date
		}
	}
	var c waitChart
	var top float64
	c.Plot, top = newPlot(dates, float64(longest), formatWait)
	if c.Plot.Empty = date == ""; c.Plot.Empty {
		return c
	}
	c.P50, c.P95 = drawLine(p50, top), drawLine(p95, top)
	c.Summary = fmt.Sprintf("Of %s that asked for a lock in the last hour, half waited at most %s and 95 of 100 at most %s. The worst minute was %s, with %s.",
		plural(f.Total.Locked, "check-out", "check-outs"), milliseconds(f.Total.WaitP50Ms), milliseconds(f.Total.WaitP95Ms),
		formatClock(date), milliseconds(longest))
	return c
}

// drawCauses sums up the causes, the most frequent first.
func drawCauses(causes []schemas.FigureCause) causeChart {
	if len(causes) == 0 {
		return causeChart{}
	}
	total, most := 0, causes[0].Count
	for _, cause := range causes {
		total += cause.Count
	}
	return causeChart{
		Most: most,
		Summary: fmt.Sprintf("%s not lent in the last hour. Most often: %s, %s.",
			plural(total, "check-out was", "check-outs were"), nameCause(causes[0]), plural(most, "time", "times")),
	}
}

// causeWords name causes whose reason is only an example: it names one title or barcode.
var causeWords = map[string]string{
	library.CodeItemNotFound:   "no item has the barcode",
	library.CodeItemStatus:     "the item's status does not allow it",
	library.CodeItemRequested:  "another patron has requested the item",
	library.CodePolicyNotFound: "there is no loan policy as the request names",
	library.CodeNoDueDate:      "the loan policy gives no due date",
	string(fault.Invalid):      "the request lacks a property, or has a wrong value",
}

// nameCause names a cause by its outcome, and by its reason if that says more.
func nameCause(c schemas.FigureCause) string {
	if c.Outcome == "" {
		return "All other causes"
	}
	o := findOutcome(c.Outcome)
	if o.Why != "" { // the word says it all
		return o.Word
	}
	if why := cmp.Or(causeWords[c.Code], c.Reason, c.Code); why != "" {
		return o.Word + ": " + why
	}
	return o.Word
}
