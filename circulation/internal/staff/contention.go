package staff

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// The page Waiting times: how much check-outs waited for each other.

// span is how far back the charts go.
type span struct {
	Key     string // in the address
	Text    string // of the link
	Words   string // completes "in the"
	Each    string // what a bar stands for, with its article
	Minutes int
	Bucket  int // minutes of a bar
	// tick numbers the stretches of time that begin with a label on the axis.
	tick   func(time.Time) int
	format string // of a time in words and tables
	label  string // of a time on the axis
}

// spans are those to choose from; the first is the default. The live page is about the first.
var spans = []span{
	{"1h", "1 hour", "last hour", "a minute", 60, 1, func(t time.Time) int { return t.Minute() / 15 }, "15:04", "15:04"},
	{"24h", "24 hours", "last 24 hours", "in 15 minutes", 24 * 60, 15, func(t time.Time) int { return t.Hour() / 4 }, "2 Jan 15:04", "15:04"},
	{"7d", "7 days", "last 7 days", "an hour", 7 * 24 * 60, 60, time.Time.Day, "2 Jan 15:04", "2 Jan"},
	{"30d", "30 days", "last 30 days", "in 4 hours", 30 * 24 * 60, 240, func(t time.Time) int { return t.YearDay() / 5 }, "2 Jan 15:04", "2 Jan"},
}

// clock writes a date of storage.
func (s span) clock(date string) string {
	t, err := parseDate(date)
	if err != nil {
		return date
	}
	return t.Format(s.format)
}

type contentionPage struct {
	Live    string // paths; empty for no stream
	Refresh string
	CSV     string
	Action  string
	Span    span
	Spans   []spanLink
	Points  []library.ServicePoint
	Point   string // the chosen one's id
	Shown   shownFigures
}

// spanLink leads to the same charts of another span.
type spanLink struct {
	Text, Path string
	Current    bool
}

// shownFigures is the part of the page that a stream sends again.
type shownFigures struct {
	Figures   schemas.Figures
	Span      span
	Newest    []schemas.FigureMinute // the buckets in the order of the tables
	CheckOuts countChart
	Waits     waitChart
	Causes    causeChart
	Rows      []causeRow
	Turns     []turn
}

// causeRow is a cause with the path of its check-outs; empty for none.
type causeRow struct {
	schemas.FigureCause
	Path string
}

// turn is a mark where the lock was turned on or off.
type turn struct {
	At     float64 // on the axis
	Date   string
	On     bool
	Follow bool // since then the service's own setting counts
	Who    string
}

// Clock writes a date of storage.
func (f shownFigures) Clock(date string) string { return f.Span.clock(date) }

// Top and Bottom are the ends of a mark.
func (shownFigures) Top() float64    { return plotTop }
func (shownFigures) Bottom() float64 { return plotBottom }

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

// readSpan reads what the address asks for.
func readSpan(v *visit) (span, schemas.FigureFilter, error) {
	q := web.QueryOf(v.c)
	chosen := spans[0]
	if i := slices.IndexFunc(spans, func(s span) bool { return s.Key == q.Text("span") }); i >= 0 {
		chosen = spans[i]
	}
	filter := schemas.FigureFilter{Minutes: chosen.Minutes, Bucket: chosen.Bucket, ServicePointID: q.Text("servicePoint")}
	if filter.ServicePointID != "" && !schemas.IsUUID(filter.ServicePointID) {
		return chosen, filter, fault.New(fault.Malformed, "There is no service point %s", fault.Shown(filter.ServicePointID))
	}
	return chosen, filter, nil
}

func (p *pages) showContention(v *visit) error {
	s, filter, err := readSpan(v)
	if err != nil {
		return err
	}
	shown, err := p.readFigures(v, s, filter)
	if err != nil {
		return err
	}
	same := func(url.Values) {}
	page := contentionPage{
		Refresh: v.pathOf("/contention", same), CSV: v.pathOf("/contention.csv", same), Action: v.path("/contention"),
		Span: s, Point: filter.ServicePointID, Shown: shown,
	}
	if s.Key == spans[0].Key {
		page.Live = v.pathOf("/contention/live", same)
	}
	for _, other := range spans {
		page.Spans = append(page.Spans, spanLink{other.Text, v.pathOf("/contention", func(q url.Values) { q.Set("span", other.Key) }), other.Key == s.Key})
	}
	if page.Points, err = p.admin.ListServicePoints(v.ctx()); err != nil {
		p.log.WarnContext(v.ctx(), "page shown without service points", "err", err)
	}
	v.results = true
	return v.show(http.StatusOK, "contention.html", "/contention", "Waiting times", page)
}

func (p *pages) streamContention(v *visit) error {
	s, filter, err := readSpan(v)
	if err != nil {
		return err
	}
	return p.stream(v, admin.FiguresAge, func() ([]byte, error) {
		shown, err := p.readFigures(v, s, filter)
		if err != nil {
			return nil, err
		}
		return p.templates.Render(v.reader(), "contention.html", "figures", shown)
	})
}

// readFigures reads the figures, and when the lock was turned on or off if the visitor may see that.
func (p *pages) readFigures(v *visit, s span, filter schemas.FigureFilter) (shownFigures, error) {
	f, err := p.admin.Figures(v.ctx(), filter)
	if err != nil {
		return shownFigures{}, err
	}
	shown := drawFigures(f, s)
	for _, c := range f.Causes {
		row := causeRow{FigureCause: c}
		if c.Outcome != "" && v.may(admin.MaySeeCheckOuts) && len(f.Minutes) > 0 {
			row.Path = v.linkCause(c, f.Minutes[0].Date, filter.ServicePointID)
		}
		shown.Rows = append(shown.Rows, row)
	}
	if v.may(admin.MaySeeChanges) {
		changes, err := p.admin.LockChanges(v.ctx(), schemas.ChangeSettings, 0, schemas.MaxChangePage)
		if err != nil {
			p.log.WarnContext(v.ctx(), "page shown without changes", "err", err)
		}
		shown.Turns = findTurns(changes.Changes, f)
	}
	return shown, nil
}

// linkCause is the path of the check-outs with a cause since a date of storage.
func (v *visit) linkCause(c schemas.FigureCause, since, servicePointID string) string {
	q := url.Values{"outcome": {c.Outcome}}
	if t, err := parseDate(since); err == nil {
		q.Set("from", t.Format("2006-01-02T15:04"))
	}
	if c.Code != "" {
		q.Set("code", c.Code)
	}
	if servicePointID != "" {
		q.Set("servicePoint", servicePointID)
	}
	return v.path("/check-outs") + "?" + q.Encode()
}

// findTurns returns the changes within the figures that turned the lock on or off, the newest first.
func findTurns(changes []schemas.LockChange, f schemas.Figures) []turn {
	if len(f.Minutes) == 0 {
		return nil
	}
	first, err := parseDate(f.Minutes[0].Date)
	end, wrong := parseDate(f.Date)
	if err != nil || wrong != nil || !end.After(first) {
		return nil
	}
	var turns []turn
	for _, c := range changes {
		was, readable := parseSettings(c.Before)
		is, usable := parseSettings(c.After)
		at, err := parseDate(c.Date)
		if !readable || !usable || err != nil || at.Before(first) || formatSwitch(was.Enabled) == formatSwitch(is.Enabled) {
			continue
		}
		share := min(1, at.Sub(first).Seconds()/end.Sub(first).Seconds())
		turns = append(turns, turn{
			At: roundTenth(plotLeft + (plotRight-plotLeft)*share), Date: c.Date, Who: cmp.Or(c.By.Name, "not known"),
			On: is.Enabled != nil && *is.Enabled, Follow: is.Enabled == nil,
		})
	}
	return turns
}

// saveFigures handles GET /staff/{tenant}/contention.csv: the tables as a file (RFC 4180).
func (p *pages) saveFigures(v *visit) error {
	_, filter, err := readSpan(v)
	if err != nil {
		return err
	}
	f, err := p.admin.Figures(v.ctx(), filter)
	if err != nil {
		return err
	}
	number := func(n *int) string {
		if n == nil {
			return ""
		}
		return strconv.Itoa(*n)
	}
	rows := [][]string{{"begin", "minutes", "check-outs", "lent", "not lent", "asked for a lock", "half waited at most ms", "19 of 20 waited at most ms", "longest wait ms"}}
	for _, m := range f.Minutes {
		rows = append(rows, []string{
			formatDate(m.Date).Machine, strconv.Itoa(filter.Bucket), strconv.Itoa(m.CheckOuts), strconv.Itoa(m.Lent), strconv.Itoa(m.CheckOuts - m.Lent),
			strconv.Itoa(m.Locked), number(m.WaitP50Ms), number(m.WaitP95Ms), number(m.WaitMaxMs),
		})
	}
	return v.sendCSV("waiting-times", rows)
}

func drawFigures(f schemas.Figures, s span) shownFigures {
	shown := shownFigures{
		Figures: f, Span: s, Newest: slices.Clone(f.Minutes),
		CheckOuts: drawCounts(f, s), Waits: drawWaits(f, s), Causes: drawCauses(f.Causes, s),
	}
	slices.Reverse(shown.Newest)
	return shown
}

func drawCounts(f schemas.Figures, s span) countChart {
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
	c.Plot, top = newPlot(f.Minutes, s, float64(busiest.CheckOuts), formatCount)
	if c.Plot.Empty = busiest.CheckOuts == 0; c.Plot.Empty {
		return c
	}
	c.Lent, c.NotLent = stackBars(lent, not, top)
	c.Summary = fmt.Sprintf("%s in the %s, %d lent and %d not. Most %s: %d at %s.",
		plural(f.Total.CheckOuts, "check-out", "check-outs"), s.Words, f.Total.Lent, f.Total.CheckOuts-f.Total.Lent,
		s.Each, busiest.CheckOuts, s.clock(busiest.Date))
	return c
}

func drawWaits(f schemas.Figures, s span) waitChart {
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
	c.Plot, top = newPlot(f.Minutes, s, float64(longest), formatWait)
	if c.Plot.Empty = date == ""; c.Plot.Empty {
		return c
	}
	c.P50, c.P95 = drawLine(p50, top), drawLine(p95, top)
	c.Summary = fmt.Sprintf("Of %s that asked for a lock in the %s, half waited at most %s and 19 of 20 at most %s. The worst was %s, with %s.",
		plural(f.Total.Locked, "check-out", "check-outs"), s.Words, milliseconds(f.Total.WaitP50Ms), milliseconds(f.Total.WaitP95Ms),
		s.clock(date), milliseconds(longest))
	return c
}

// drawCauses sums up the causes, the most frequent first.
func drawCauses(causes []schemas.FigureCause, s span) causeChart {
	if len(causes) == 0 {
		return causeChart{}
	}
	total, most := 0, causes[0].Count
	for _, cause := range causes {
		total += cause.Count
	}
	return causeChart{
		Most: most,
		Summary: fmt.Sprintf("%s not lent in the %s. Most often: %s, %s.",
			plural(total, "check-out was", "check-outs were"), s.Words, nameCause(causes[0]), plural(most, "time", "times")),
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
