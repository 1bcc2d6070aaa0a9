package staff

import (
	"cmp"
	"strconv"
	"strings"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web/texts"
)

// The charts of the page Waiting times.

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

func (v *visit) drawCounts(f schemas.Figures, s span) countChart {
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
	c.Plot, top = newPlot(v.reader, f.Minutes, s, float64(busiest.CheckOuts), v.formatCount)
	if c.Plot.Empty = busiest.CheckOuts == 0; c.Plot.Empty {
		return c
	}
	c.Lent, c.NotLent = stackBars(lent, not, top)
	c.Summary = v.say("contention.countsSummary", texts.Values{
		"count": strconv.Itoa(f.Total.CheckOuts), "span": v.say(s.In, nil), "lent": strconv.Itoa(f.Total.Lent),
		"refused": strconv.Itoa(f.Total.CheckOuts - f.Total.Lent), "each": v.say(s.Each, nil), "most": strconv.Itoa(busiest.CheckOuts),
		"clock": s.clock(v.reader, busiest.Date),
	})
	return c
}

func (v *visit) drawWaits(f schemas.Figures, s span) waitChart {
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
	c.Plot, top = newPlot(v.reader, f.Minutes, s, float64(longest), v.formatWait)
	if c.Plot.Empty = date == ""; c.Plot.Empty {
		return c
	}
	c.P50, c.P95 = drawLine(p50, top), drawLine(p95, top)
	c.Summary = v.say("contention.waitsSummary", texts.Values{
		"count": strconv.Itoa(f.Total.Locked), "span": v.say(s.In, nil), "half": v.writeWait(f.Total.WaitP50Ms), "most": v.writeWait(f.Total.WaitP95Ms),
		"clock": s.clock(v.reader, date), "longest": v.writeWait(&longest),
	})
	return c
}

// drawCauses sums up the causes, the most frequent first.
func (v *visit) drawCauses(causes []schemas.FigureCause, s span) causeChart {
	if len(causes) == 0 {
		return causeChart{}
	}
	total, most := 0, causes[0].Count
	for _, cause := range causes {
		total += cause.Count
	}
	return causeChart{
		Most: most,
		Summary: v.say("contention.causesSummary", texts.Values{
			"count": strconv.Itoa(total), "span": v.say(s.In, nil), "cause": v.nameCause(causes[0]), "often": v.count("times", most),
		}),
	}
}

// causeWords name causes whose reason is only an example: it names one title or barcode.
var causeWords = map[string]texts.Code{
	library.CodeItemNotFound:   "cause.itemNotFound",
	library.CodeItemStatus:     "cause.itemStatus",
	library.CodeItemRequested:  "cause.itemRequested",
	library.CodePolicyNotFound: "cause.policyNotFound",
	library.CodeNoDueDate:      "cause.noDueDate",
	string(fault.Invalid):      "cause.invalid",
}

// refusalWords name causes whose reason is a sentence of FOLIO, which is in English.
var refusalWords = map[string]texts.Code{
	library.CodeItemCheckedOut:      "cause.itemCheckedOut",
	library.CodeOpenLoan:            "cause.itemCheckedOut",
	library.CodeItemHadByPatron:     "cause.itemHadByPatron",
	"ITEM_NOT_LOANABLE":             "cause.itemNotLoanable",
	"USER_BARCODE_NOT_FOUND":        "cause.patronNotFound",
	"USER_IS_BLOCKED_AUTOMATICALLY": "cause.patronBlocked",
	"USER_IS_BLOCKED_MANUALLY":      "cause.patronBlocked",
	"USER_IS_INACTIVE_OR_EXPIRED":   "cause.patronInactive",
}

// translateCause is a cause in other languages than English; there the reason says it.
func (v *visit) translateCause(code string) texts.Code {
	if v.reader.Language == texts.English {
		return ""
	}
	if strings.HasPrefix(code, "ITEM_LIMIT_") {
		return "cause.limit"
	}
	return cmp.Or(causeWords[code], refusalWords[code])
}

// nameCause names a cause by its outcome, and by its reason if that says more.
func (v *visit) nameCause(c schemas.FigureCause) string {
	if c.Outcome == "" {
		return v.say("cause.others", nil)
	}
	o := findOutcome(c.Outcome)
	if o.Why != "" { // the word says it all
		return v.say(o.Word, nil)
	}
	if why := cmp.Or(v.say(cmp.Or(causeWords[c.Code], v.translateCause(c.Code)), nil), c.Reason, c.Code); why != "" {
		return v.say("cause.of", texts.Values{"outcome": v.say(o.Word, nil), "why": why})
	}
	return v.say(o.Word, nil)
}
