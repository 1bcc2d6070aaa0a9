package staff

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
	"checkoutlock/web/page"
	"checkoutlock/web/texts"
)

// The page Waiting times: how much check-outs waited for each other.

// span is how far back the charts go.
type span struct {
	Key     string     // in the address
	Text    texts.Code // of the link
	In, Of  texts.Code // in the span, of the span
	Each    texts.Code // what a bar stands for
	Minutes int
	Bucket  int // minutes of a bar
	// tick numbers the stretches of time that begin with a label on the axis.
	tick func(time.Time) int
	days bool // times in words and tables have the day
	// dayAxis writes days on the axis in place of times.
	dayAxis bool
}

// spans are those to choose from; the first is the default. The live page is about the first.
var spans = []span{
	{"1h", "span.hour", "span.inHour", "span.ofHour", "span.eachMinute", 60, 1, func(t time.Time) int { return t.Minute() / 15 }, false, false},
	{"24h", "span.day", "span.inDay", "span.ofDay", "span.each15Minutes", 24 * 60, 15, func(t time.Time) int { return t.Hour() / 4 }, true, false},
	{"7d", "span.week", "span.inWeek", "span.ofWeek", "span.eachHour", 7 * 24 * 60, 60, time.Time.Day, true, true},
	{"30d", "span.month", "span.inMonth", "span.ofMonth", "span.each4Hours", 30 * 24 * 60, 240, func(t time.Time) int { return (int(t.Unix()) + utcOffset(t)) / (5 * 24 * 60 * 60) }, true, true},
}

// clock writes a date of storage.
func (s span) clock(r page.Reader, date string) string {
	t, err := page.ParseDate(date)
	switch {
	case err != nil:
		return date
	case s.days:
		return writeDay(r, t) + " " + t.In(r.Zone).Format("15:04")
	}
	return t.In(r.Zone).Format("15:04")
}

// label writes a time on the axis.
func (s span) label(r page.Reader, t time.Time) string {
	if s.dayAxis {
		return writeDay(r, t)
	}
	return t.In(r.Zone).Format("15:04")
}

// writeDay writes a day and its month.
func writeDay(r page.Reader, t time.Time) string {
	t = t.In(r.Zone)
	months := strings.Fields(r.Say(texts.Text{Code: "time.months"}))
	return r.Say(texts.Text{Code: "time.day", Values: texts.Values{"day": strconv.Itoa(t.Day()), "month": months[t.Month()-1]}})
}

type contentionPage struct {
	Live    string // paths; empty for no stream
	Refresh string
	CSV     string
	Span    span
	Spans   []page.Link // to the same charts of another span
	Points  []library.ServicePoint
	Point   string // the chosen one's id
	Shown   shownFigures
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
	reader    page.Reader
}

// causeRow is a cause, its name, and the path of its check-outs; empty for none.
type causeRow struct {
	schemas.FigureCause
	Name string
	Path string
}

// turn is a mark where the lock was turned on or off.
type turn struct {
	At    float64 // on the axis
	Date  string
	State texts.Code // since then; the default is the service's own setting
	Who   string
}

// Language is the reader's.
func (f shownFigures) Language() string { return f.reader.Language }

// Clock writes a date of storage.
func (f shownFigures) Clock(date string) string { return f.Span.clock(f.reader, date) }

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
		Refresh: v.pathOf("/contention", same), CSV: v.pathOf("/contention.csv", same),
		Span: s, Point: filter.ServicePointID, Shown: shown,
		Spans: convert.All(spans, func(other span) page.Link {
			return page.Link{Text: other.Text, Path: v.pathOf("/contention", func(q url.Values) { q.Set("span", other.Key) }), Current: other.Key == s.Key}
		}),
	}
	if s.Key == spans[0].Key {
		page.Live = v.pathOf("/contention/live", same)
	}
	if page.Points, err = p.admin.ListServicePoints(v.ctx()); err != nil {
		p.log.WarnContext(v.ctx(), "page shown without service points", "err", err)
	}
	v.results = true
	return v.show(http.StatusOK, "contention.html", "/contention", "nav.contention", page)
}

func (p *pages) streamContention(v *visit) error {
	s, filter, err := readSpan(v)
	if err != nil {
		return err
	}
	return p.streams.Follow(v.c, v.reader, admin.FiguresAge, func() ([]byte, error) {
		shown, err := p.readFigures(v, s, filter)
		if err != nil {
			return nil, err
		}
		return p.templates.Render(v.reader, "contention.html", "figures", shown)
	})
}

// readFigures reads the figures, and when the lock was turned on or off if the visitor may see that.
func (p *pages) readFigures(v *visit, s span, filter schemas.FigureFilter) (shownFigures, error) {
	f, err := p.admin.Figures(v.ctx(), filter)
	if err != nil {
		return shownFigures{}, err
	}
	shown := v.drawFigures(f, s)
	for _, c := range f.Causes {
		row := causeRow{FigureCause: c, Name: v.nameCause(c)}
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
		shown.Turns = v.findTurns(changes.Changes, f, s)
	}
	return shown, nil
}

// linkCause is the path of the check-outs with a cause since a date of storage.
func (v *visit) linkCause(c schemas.FigureCause, since, servicePointID string) string {
	q := url.Values{"outcome": {c.Outcome}}
	if t, err := page.ParseDate(since); err == nil {
		q.Set("from", t.In(v.reader.Zone).Format("2006-01-02T15:04"))
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
// The plot ends with the end of the last bucket, also while that lasts.
func (v *visit) findTurns(changes []schemas.LockChange, f schemas.Figures, s span) []turn {
	if len(f.Minutes) == 0 {
		return nil
	}
	first, err := page.ParseDate(f.Minutes[0].Date)
	if err != nil {
		return nil
	}
	plotted := time.Duration(len(f.Minutes)*s.Bucket) * time.Minute
	var turns []turn
	for _, c := range changes {
		was, readable := parseSettings(c.Before)
		is, usable := parseSettings(c.After)
		at, err := page.ParseDate(c.Date)
		if !readable || !usable || err != nil || at.Before(first) || nameSwitch(was.Enabled) == nameSwitch(is.Enabled) {
			continue
		}
		share := min(1, at.Sub(first).Seconds()/plotted.Seconds())
		turns = append(turns, turn{
			At: roundTenth(plotLeft + (plotRight-plotLeft)*share), Date: c.Date, Who: cmp.Or(c.By.Name, v.say("unknown", nil)),
			State: nameTurn(is.Enabled),
		})
	}
	return turns
}

// nameTurn names what a turn turned to, as a chart has room for.
func nameTurn(enabled *bool) texts.Code {
	if enabled == nil {
		return "contention.toDefault"
	}
	return nameSwitch(enabled)
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
	rows := [][]string{v.listHeads(
		"csv.begin", "csv.minutes", "csv.checkOuts", "csv.lent", "csv.notLent", "csv.asked", "csv.halfWaitedMs", "csv.mostWaitedMs", "csv.longestWaitMs",
	)}
	for _, m := range f.Minutes {
		rows = append(rows, []string{
			v.formatDate(m.Date), strconv.Itoa(filter.Bucket), strconv.Itoa(m.CheckOuts), strconv.Itoa(m.Lent), strconv.Itoa(m.CheckOuts - m.Lent),
			strconv.Itoa(m.Locked), number(m.WaitP50Ms), number(m.WaitP95Ms), number(m.WaitMaxMs),
		})
	}
	return v.sendCSV("waiting-times", rows)
}

func (v *visit) drawFigures(f schemas.Figures, s span) shownFigures {
	shown := shownFigures{
		reader: v.reader, Figures: f, Span: s, Newest: slices.Clone(f.Minutes),
		CheckOuts: v.drawCounts(f, s), Waits: v.drawWaits(f, s), Causes: v.drawCauses(f.Causes, s),
	}
	slices.Reverse(shown.Newest)
	return shown
}
