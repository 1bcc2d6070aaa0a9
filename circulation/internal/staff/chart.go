package staff

import (
	"math"
	"strconv"
	"strings"
	"time"

	"checkoutlock/schemas"
	"checkoutlock/web/page"
)

// Charts turn numbers into SVG shapes. The style sheet has colours and strokes.

// The picture's sides in SVG units, and those of the plot in it.
const (
	chartWidth, chartHeight = 640.0, 220.0
	plotLeft, plotRight     = 64.0, 628.0
	plotTop, plotBottom     = 14.0, 190.0
	wantedTicks             = 4
)

// tick is a horizontal line, or a time on the axis, with its label. A line's label is a
// bit lower, so that their middles meet.
type tick struct {
	At, Label float64
	Text      string
	Spare     bool // left out where room is short
}

type bar struct{ X, Y, Width, Height float64 }

// plot is the frame of a chart over time.
type plot struct {
	Width, Height, Left, Right, Top, Bottom float64
	Lines                                   []tick // from 0 up
	Times                                   []tick
	Empty                                   bool // there is nothing to draw
}

// chooseMarks returns the round numbers from 0 to the first that is at least highest.
// They are about wantedTicks steps of 1, 2 or 5 times a power of 10, never fractions.
func chooseMarks(highest float64) []float64 {
	step := 1.0
	for i := 0; step*wantedTicks < highest; i++ {
		step *= [...]float64{2, 2.5, 2}[i%3]
	}
	marks := []float64{0, step}
	for marks[len(marks)-1] < highest {
		marks = append(marks, float64(len(marks))*step)
	}
	return marks
}

// newPlot frames a chart of the buckets of a span. highest is the highest value, top the
// value at the plot's top; format writes a value at the axis.
func newPlot(r page.Reader, buckets []schemas.FigureMinute, s span, highest float64, format func(float64) string) (p plot, top float64) {
	marks := chooseMarks(highest)
	top = marks[len(marks)-1]
	p = plot{Width: chartWidth, Height: chartHeight, Left: plotLeft, Right: plotRight, Top: plotTop, Bottom: plotBottom}
	for _, m := range marks {
		y := placeValue(m, top)
		p.Lines = append(p.Lines, tick{At: y, Label: y + 4, Text: format(m)})
	}
	for i, b := range buckets {
		t, err := page.ParseDate(b.Date)
		t = t.In(r.Zone)
		if err == nil && s.tick(t) != s.tick(t.Add(-time.Duration(s.Bucket)*time.Minute)) {
			p.Times = append(p.Times, tick{placeMinute(i, len(buckets)), plotBottom + 18, s.label(r, t), len(p.Times)%2 == 1})
		}
	}
	return p, top
}

// placeValue returns the height of a value in a plot that ends with top.
func placeValue(value, top float64) float64 {
	return roundTenth(plotBottom - (plotBottom-plotTop)*value/top)
}

// placeMinute returns the middle of the i-th of n buckets.
func placeMinute(i, n int) float64 {
	return roundTenth(plotLeft + (plotRight-plotLeft)*(float64(i)+.5)/float64(n))
}

// stackBars returns bars of two parts for each bucket, the second part upon the first.
// It leaves out parts of zero.
func stackBars(first, second []int, top float64) (low, high []bar) {
	width := (plotRight - plotLeft) / float64(len(first))
	for i := range first {
		x := roundTenth(placeMinute(i, len(first)) - width*.4)
		base := placeValue(float64(first[i]), top)
		if first[i] > 0 {
			low = append(low, bar{x, base, roundTenth(width * .8), roundTenth(plotBottom - base)})
		}
		if second[i] > 0 {
			y := placeValue(float64(first[i])+float64(second[i]), top)
			high = append(high, bar{x, y, roundTenth(width * .8), roundTenth(base - y)})
		}
	}
	return low, high
}

// drawLine returns the path of an SVG through the values of buckets. Missing values are
// gaps; a single value between gaps is a dot.
func drawLine(values []*int, top float64) string {
	var path strings.Builder
	drawn := false
	for i, v := range values {
		if v == nil {
			drawn = false
			continue
		}
		move := "L"
		if !drawn {
			move = "M"
		}
		path.WriteString(move + formatCoordinate(placeMinute(i, len(values))) + " " + formatCoordinate(placeValue(float64(*v), top)))
		alone := !drawn && (i+1 == len(values) || values[i+1] == nil)
		if alone {
			path.WriteString("h0")
		}
		drawn = true
	}
	return path.String()
}

// roundTenth rounds to a tenth of a unit; smaller differences cannot be seen.
func roundTenth(v float64) float64 { return math.Round(v*10) / 10 }

func formatCoordinate(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func (v *visit) formatCount(n float64) string { return v.reader.Number(n, 0) }

func (v *visit) formatWait(ms float64) string {
	return v.reader.Duration(time.Duration(ms) * time.Millisecond)
}

// writeWait writes milliseconds; nil is a dash.
func (v *visit) writeWait(ms *int) string {
	if ms == nil {
		return "–"
	}
	return v.formatWait(float64(*ms))
}
