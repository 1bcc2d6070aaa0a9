package staff

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Charts are numbers turned into the few shapes that an SVG needs. Colours and
// strokes are the style sheet's.

// The picture's sides in SVG units, and those of the plot in it.
const (
	chartWidth, chartHeight             = 640.0, 220.0
	plotLeft, plotRight                 = 64.0, 628.0
	plotTop, plotBottom                 = 14.0, 190.0
	rowHeight, barHeight, barWidest     = 44.0, 16.0, 560.0
	labelLongest                    int = 90 // characters of a label in a chart, in a wide font
	wantedTicks                         = 4
	minutesPerTick                      = 15
)

// tick is a line across the chart, or a place below it, with its label. A line's
// label stands a bit below it, so that their middles meet.
type tick struct {
	At, Label float64
	Text      string
}

// box is a bar.
type box struct{ X, Y, Width, Height float64 }

// plot is the frame of a chart over time.
type plot struct {
	Width, Height, Left, Right, Top, Bottom float64
	Lines                                   []tick // from 0 up
	Times                                   []tick
	Empty                                   bool // there is nothing to draw
}

// scale returns the round numbers from 0 to the first that is at least highest,
// about wantedTicks steps of 1, 2 or 5 times a power of 10. Steps are whole.
func scale(highest float64) []float64 {
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

// newPlot frames a chart of minutes that begin at dates, whose highest value is
// highest; text writes a value at the axis.
func newPlot(dates []string, highest float64, text func(float64) string) (p plot, top float64) {
	marks := scale(highest)
	top = marks[len(marks)-1]
	p = plot{Width: chartWidth, Height: chartHeight, Left: plotLeft, Right: plotRight, Top: plotTop, Bottom: plotBottom}
	for _, m := range marks {
		y := height(m, top)
		p.Lines = append(p.Lines, tick{y, y + 4, text(m)})
	}
	for i, d := range dates {
		if t, err := localTime(d); err == nil && t.Minute()%minutesPerTick == 0 {
			x := middle(i, len(dates))
			p.Times = append(p.Times, tick{x, plotBottom + 18, clock(t)})
		}
	}
	return p, top
}

// height is where a value lies in a plot that ends with top.
func height(value, top float64) float64 {
	return round(plotBottom - (plotBottom-plotTop)*value/top)
}

// middle is where the i-th of n minutes lies.
func middle(i, n int) float64 {
	return round(plotLeft + (plotRight-plotLeft)*(float64(i)+.5)/float64(n))
}

// stack returns bars of two parts for each minute, the second upon the first; parts
// of nothing are left out.
func stack(first, second []int, top float64) (low, high []box) {
	width := (plotRight - plotLeft) / float64(len(first))
	for i := range first {
		x := round(middle(i, len(first)) - width*.4)
		base := height(float64(first[i]), top)
		if first[i] > 0 {
			low = append(low, box{x, base, round(width * .8), round(plotBottom - base)})
		}
		if second[i] > 0 {
			y := height(float64(first[i])+float64(second[i]), top)
			high = append(high, box{x, y, round(width * .8), round(base - y)})
		}
	}
	return low, high
}

// line is the path of an SVG through the values of minutes. It has gaps where there
// is none; a value alone between gaps is a dot.
func line(values []*int, top float64) string {
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
		path.WriteString(move + coordinate(middle(i, len(values))) + " " + coordinate(height(float64(*v), top)))
		alone := !drawn && (i+1 == len(values) || values[i+1] == nil)
		if alone {
			path.WriteString("h0")
		}
		drawn = true
	}
	return path.String()
}

// row is a bar that lies, with its label above it.
type row struct {
	LabelY, BarY, CountX, CountY float64
	Width, Height                float64
	Label                        string
	Count                        int
}

// rows returns bars that lie, as long as their counts, and the height of them all.
func rows(labels []string, counts []int) (list []row, total float64) {
	most := 1
	for _, n := range counts {
		most = max(most, n)
	}
	for i, n := range counts {
		y := float64(i) * rowHeight
		width := round(barWidest * float64(n) / float64(most))
		list = append(list, row{
			LabelY: y + 16, BarY: y + 22, CountX: width + 8, CountY: y + 35, Width: width, Height: barHeight,
			Label: cut(labels[i]), Count: n,
		})
	}
	return list, float64(len(counts))*rowHeight + 4
}

// cut shortens a label to what a chart has room for; the table has all of it.
func cut(label string) string {
	if r := []rune(label); len(r) > labelLongest {
		return strings.TrimSpace(string(r[:labelLongest-1])) + "…"
	}
	return label
}

// round leaves tenths, which no eye can tell apart.
func round(v float64) float64 { return math.Round(v*10) / 10 }

func coordinate(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// countText and waitText write values at an axis.
func countText(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }

func waitText(v float64) string { return milliseconds(int64(v)) }

func clock(t time.Time) string { return t.Format("15:04") }
