package staff

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas"
)

// The page Contention: how much check-outs waited for each other in the last hour.

// figureMinutes is how far back the figures go.
const figureMinutes = 60

type contentionPage struct {
	Live    string // paths
	Refresh string
	Figures contentionFigures
}

// contentionFigures is the part of the page that a stream sends again.
type contentionFigures struct {
	schemas.Figures
	Minutes   []minuteRow
	CheckOuts countChart
	Waits     waitChart
	Causes    causeChart
}

// minuteRow is a minute in the tables.
type minuteRow struct {
	schemas.FigureMinute
	ID      string
	Clock   string
	NotLent int
}

type countChart struct {
	plot
	Summary       string
	Lent, NotLent []box
}

type waitChart struct {
	plot
	Summary  string
	P50, P95 string // paths
}

type causeChart struct {
	Summary       string
	Rows          []row
	Width, Height float64
	Table         []causeRow
}

type causeRow struct {
	schemas.FigureCause
	Label string
}

// contention handles GET /staff/{tenant}/contention.
func (p *Pages) contention(v *visit) error {
	f, err := p.Admin.Figures(v.ctx(), figureMinutes)
	if err != nil {
		return err
	}
	return v.show(http.StatusOK, "contention.html", "/contention", "Contention", contentionPage{
		Live: v.path("/contention/live"), Refresh: v.path("/contention"), Figures: drawFigures(f),
	})
}

// liveContention handles GET /staff/{tenant}/contention/live.
func (p *Pages) liveContention(v *visit) error {
	return p.stream(v, admin.FiguresAge, func() ([]byte, error) {
		f, err := p.Admin.Figures(v.ctx(), figureMinutes)
		if err != nil {
			return nil, err
		}
		return p.part("contention.html", "figures", drawFigures(f))
	})
}

func drawFigures(f schemas.Figures) contentionFigures {
	shown := contentionFigures{Figures: f, CheckOuts: drawCounts(f), Waits: drawWaits(f), Causes: drawCauses(f)}
	for i, m := range f.Minutes {
		row := minuteRow{FigureMinute: m, ID: fmt.Sprint("minute-", i), Clock: m.Date, NotLent: m.CheckOuts - m.Lent}
		if t, err := localTime(m.Date); err == nil {
			row.Clock, row.ID = clock(t), fmt.Sprint("minute-", t.Unix()/60)
		}
		shown.Minutes = append(shown.Minutes, row)
	}
	slices.Reverse(shown.Minutes) // tables have the newest on top
	return shown
}

func datesOf(f schemas.Figures) []string {
	dates := make([]string, len(f.Minutes))
	for i, m := range f.Minutes {
		dates[i] = m.Date
	}
	return dates
}

func drawCounts(f schemas.Figures) countChart {
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
	c.plot, top = newPlot(datesOf(f), float64(busiest.CheckOuts), countText)
	if c.Empty = busiest.CheckOuts == 0; c.Empty {
		return c
	}
	c.Lent, c.NotLent = stack(lent, not, top)
	c.Summary = fmt.Sprintf("%s in the last hour, %d lent and %d not. Most in one minute: %d at %s.",
		plural(f.Total.CheckOuts, "check-out", "check-outs"), f.Total.Lent, f.Total.CheckOuts-f.Total.Lent,
		busiest.CheckOuts, clockOf(busiest.Date))
	return c
}

func drawWaits(f schemas.Figures) waitChart {
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
	c.plot, top = newPlot(datesOf(f), float64(longest), waitText)
	if c.Empty = date == ""; c.Empty {
		return c
	}
	c.P50, c.P95 = line(p50, top), line(p95, top)
	c.Summary = fmt.Sprintf("Of %s that asked for a lock in the last hour, half waited at most %s and 95 of 100 at most %s. The worst minute was %s, with %s.",
		plural(f.Total.Locked, "check-out", "check-outs"), milliseconds(f.Total.WaitP50Ms), milliseconds(f.Total.WaitP95Ms),
		clockOf(date), milliseconds(longest))
	return c
}

func drawCauses(f schemas.Figures) causeChart {
	c := causeChart{Width: chartWidth}
	labels, counts := make([]string, len(f.Causes)), make([]int, len(f.Causes))
	total := 0
	for i, cause := range f.Causes {
		labels[i], counts[i] = causeLabel(cause), cause.Count
		total += cause.Count
		c.Table = append(c.Table, causeRow{cause, labels[i]})
	}
	if len(f.Causes) == 0 {
		return c
	}
	c.Rows, c.Height = rows(labels, counts)
	c.Summary = fmt.Sprintf("%s not lent in the last hour. Most often: %s, %s.",
		plural(total, "check-out was", "check-outs were"), labels[0], plural(counts[0], "time", "times"))
	return c
}

// causeWords are about causes whose reason is only an example: it names a title, say.
var causeWords = map[string]string{
	checkout.CauseItemNotFound:   "no item has the barcode",
	checkout.CauseItemStatus:     "the item's status does not allow it",
	checkout.CauseItemRequested:  "another patron has requested the item",
	checkout.CausePolicyNotFound: "there is no loan policy as the request names",
}

// causeLabel names a cause: how it ended, and why as far as that tells more.
func causeLabel(c schemas.FigureCause) string {
	if c.Outcome == "" {
		return "All other causes"
	}
	o := outcomeOf(c.Outcome)
	if o.Why != "" { // its word says it all
		return o.Word
	}
	if why := cmp.Or(causeWords[c.Code], c.Reason, c.Code); why != "" {
		return o.Word + ": " + why
	}
	return o.Word
}

func clockOf(date string) string {
	t, err := localTime(date)
	if err != nil {
		return date
	}
	return clock(t)
}
