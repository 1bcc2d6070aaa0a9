package engine_test

import (
	"slices"
	"strconv"
	"testing"

	"checkoutlock/resource-locks/internal/engine"
)

func TestRecent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		events int
		want   []string
	}{
		{name: "none", events: 0, want: nil},
		{name: "fewer than it keeps", events: 2, want: []string{"2", "1"}},
		{name: "as many as it keeps", events: 3, want: []string{"3", "2", "1"}},
		{name: "more than it keeps", events: 7, want: []string{"7", "6", "5"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := engine.NewRecent(3)
			for i := range tt.events {
				r.Observe(engine.Event{Kind: engine.EventGranted, Name: strconv.Itoa(i + 1)})
				r.Observe(engine.Event{Kind: engine.EventRenewed, Name: "renewal"})
			}
			var got []string
			for _, e := range r.List() {
				got = append(got, e.Name)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
