package postgres_test

import (
	"testing"
	"time"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/resource-locks/internal/postgres/schematest"
	"checkoutlock/schemas/fault"
)

func TestRefusals_OnlyRefuse(t *testing.T) {
	t.Parallel()
	for mode, parameters := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			store := postgres.NewLockStore(schematest.New(t).Open(parameters))
			asked := acquireKeys(t, store, "held", "released", "own", "outdated", "")
			if _, err := store.Release(t.Context(), asked[1].Key, "ann"); err != nil {
				t.Fatal(err)
			}
			asked[3].TTL = time.Millisecond
			if _, err := store.Acquire(t.Context(), asked[3]); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "the end of the TTL", func() bool {
				_, err := store.Fetch(t.Context(), asked[3].Key)
				return fault.Is(err, fault.NotFound)
			})
			for i := range asked {
				if asked[i].Name != "own" {
					asked[i].Owner = "bob"
				}
			}
			asked = append(asked, asked[0], engine.Acquire{Key: engine.Key{Namespace: "ns", Name: "never locked"}, Owner: "bob"})
			for _, group := range [][]int{{0, 1, 2, 3, 4, 5, 6}, {0}, {1}, {2}, {3}} {
				var members []engine.Acquire
				for _, i := range group {
					members = append(members, asked[i])
				}
				refused, err := store.SendRefusals(t.Context(), members)
				if err != nil {
					t.Fatal(err)
				}
				for place, i := range group {
					l, is := refused[place]
					if want := i == 0 || i >= 4 && i < 6; is != want || is && (l.Key != asked[i].Key || l.Owner != "ann") {
						t.Errorf("%d of %d: got %+v, %t, want a refusal: %t", i, len(group), l, is, want)
					}
				}
			}
		})
	}
}
