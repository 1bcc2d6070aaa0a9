package staff

import (
	"math"
	"slices"
	"testing"
	"time"

	"checkoutlock/schemas"
	"checkoutlock/web/page"
)

func TestChart_AxesEndWithARoundNumber(t *testing.T) {
	t.Parallel()
	for highest, want := range map[float64][]float64{
		0:       {0, 1},
		1:       {0, 1},
		3:       {0, 1, 2, 3},
		4:       {0, 1, 2, 3, 4},
		5:       {0, 2, 4, 6},
		8:       {0, 2, 4, 6, 8},
		9:       {0, 5, 10},
		21:      {0, 10, 20, 30},
		340:     {0, 100, 200, 300, 400},
		25_000:  {0, 10_000, 20_000, 30_000},
		3.6e6:   {0, 1e6, 2e6, 3e6, 4e6},
		3e9 + 1: {0, 1e9, 2e9, 3e9, 4e9},
	} {
		if got := chooseMarks(highest); !slices.Equal(got, want) {
			t.Errorf("%g: got %v, want %v", highest, got, want)
		}
	}
	for _, huge := range []float64{math.MaxInt, 1e300} {
		if got := chooseMarks(huge); len(got) > wantedTicks+1 || got[len(got)-1] < huge {
			t.Errorf("%g: got %v", huge, got)
		}
	}
}

func TestChart_PlotHasLinesAndTimesOfDay(t *testing.T) {
	t.Parallel()
	dates := []string{
		"2026-08-22T13:29:00.000+00:00", "2026-08-22T13:30:00.000+00:00", "no date", "2026-08-22T13:46:00.000+00:00",
	}
	var minutes []schemas.FigureMinute
	for _, d := range dates {
		minutes = append(minutes, schemas.FigureMinute{Date: d})
	}
	v := &visit{reader: english}
	p, top := newPlot(english, minutes, spans[0], 3, v.formatCount)
	lowest, highest := tick{At: 190, Label: 194, Text: "0"}, tick{At: 14, Label: 18, Text: "3"}
	if top != 3 || len(p.Lines) != 4 || p.Lines[0] != lowest || p.Lines[3] != highest {
		t.Errorf("got up to %g: %v", top, p.Lines)
	}
	when, err := page.ParseDate(dates[1])
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Times) != 1 || p.Times[0] != (tick{At: 275.5, Label: 208, Text: when.Local().Format("15:04")}) {
		t.Errorf("got the times %v", p.Times)
	}
	if p, _ = newPlot(english, nil, spans[0], 0, v.formatWait); len(p.Times) != 0 || p.Lines[1].Text != "1\u00a0ms" {
		t.Errorf("without minutes got %v and %v", p.Times, p.Lines)
	}
}

// The labels of 30 days keep their distance, also where a year ends.
func TestChart_LabelsOfDaysKeepTheirDistance(t *testing.T) {
	t.Parallel()
	begin := time.Date(2027, time.December, 12, 0, 0, 0, 0, time.UTC)
	s := spans[3]
	s.dayAxis = false // english has no names of months
	for month := range 18 {
		var buckets []schemas.FigureMinute
		for i := range 30 * 6 {
			date := begin.AddDate(0, month, 0).Add(time.Duration(4*i) * time.Hour)
			buckets = append(buckets, schemas.FigureMinute{Date: date.Format(schemas.FolioTime)})
		}
		p, _ := newPlot(english, buckets, s, 1, (&visit{reader: english}).formatCount)
		for i := 1; i < len(p.Times); i++ {
			if apart := p.Times[i].At - p.Times[i-1].At; apart < 90 {
				t.Errorf("after %d months two labels stand %g units apart", month, apart)
			}
		}
		if len(p.Times) < 5 {
			t.Errorf("got the labels %v", p.Times)
		}
	}
}

func TestChart_StacksBars(t *testing.T) {
	t.Parallel()
	low, high := stackBars([]int{0, 2, 3}, []int{0, 2, 0}, 4)
	wantLow, wantHigh := []bar{
		{X: 270.8, Y: 102, Width: 150.4, Height: 88}, {X: 458.8, Y: 58, Width: 150.4, Height: 132},
	}, []bar{{X: 270.8, Y: 14, Width: 150.4, Height: 88}}
	if !slices.Equal(low, wantLow) || !slices.Equal(high, wantHigh) {
		t.Errorf("got %v and %v, want %v and %v", low, high, wantLow, wantHigh)
	}
	if low, high = stackBars(nil, nil, 1); low != nil || high != nil {
		t.Errorf("of nothing got %v and %v", low, high)
	}
	low, high = stackBars([]int{math.MaxInt}, []int{math.MaxInt}, 2*float64(math.MaxInt))
	if low[0].Y != 102 || high[0].Y != 14 {
		t.Errorf("of huge numbers got %v and %v", low, high)
	}
}

func TestChart_LinesHaveGapsForMissingValues(t *testing.T) {
	t.Parallel()
	a, b, c := 0, 100, 50
	for _, tt := range []struct {
		values []*int
		want   string
	}{
		{nil, ""},
		{[]*int{nil, nil}, ""},
		{[]*int{&a}, "M346 190h0"},
		{[]*int{&a, &b}, "M205 190L487 14"},
		{[]*int{&a, nil, &b, &c}, "M134.5 190h0M416.5 14L557.5 102"},
		{[]*int{&a, &b, nil, &c}, "M134.5 190L275.5 14M557.5 102h0"},
	} {
		if got := drawLine(tt.values, 100); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}
