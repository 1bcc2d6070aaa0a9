package checkout_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const dvdTypeID = "5ee11d91-f7e8-481d-b079-65d708582ccc"

// changing is a library whose item changes while its first commit is under way.
type changing struct {
	*world
	change func(*world)
	lost   error          // of a holdings record, an instance, a location or a type
	counts []string       // material types that were counted
	limit  map[string]int // open loans by material type
}

func (c *changing) CheckOut(ctx context.Context, body schemas.CheckOut) (schemas.CheckOutResult, error) {
	if len(c.commits) == 0 {
		c.change(c.world)
		c.item.Version++
		c.commit = []error{errChanged}
	}
	return c.world.CheckOut(ctx, body)
}

func (c *changing) OpenLoans(ctx context.Context, count checkout.LoanCount) (int, error) {
	c.counts = append(c.counts, count.MaterialTypeID)
	_, err := c.world.OpenLoans(ctx, count)
	return c.limit[count.MaterialTypeID], err
}

func (c *changing) Holdings(ctx context.Context, id string) (checkout.Holdings, error) {
	if c.lost != nil && len(c.commits) > 0 {
		return checkout.Holdings{}, c.lost
	}
	return c.world.Holdings(ctx, id)
}

// lend checks the book out.
func (c *changing) lend(t *testing.T) (checkout.Lent, error) {
	t.Helper()
	s := c.service()
	s.Library, s.Committer = c, c
	return s.CheckOut(t.Context(), checkout.Request{ItemBarcode: "book", UserBarcode: "ann", ServicePointID: deskID})
}

func TestAChangedItemIsJudgedByTheLimitOfItsNewType(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]settings.Settings{
		"with the lock":    newWorld().set,
		"without the lock": {Version: "7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &changing{
				world: newWorld(), limit: map[string]int{bookTypeID: 2, dvdTypeID: 3},
				change: func(w *world) { w.item.MaterialTypeID = dvdTypeID },
			}
			c.set = set
			c.rules += "m " + dvdTypeID + ": l " + threeID + " r r1 n n1 o o1 i i1\n"
			_, err := c.lend(t)
			if want := []string{"Patron has reached maximum limit of 3 items for material type"}; !slices.Equal(messages(err), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			if len(c.commits) != 1 || c.counts[len(c.counts)-1] != dvdTypeID {
				t.Errorf("committed %d times, counted %v, want one commit and a last count of the new type", len(c.commits), c.counts)
			}
			if e := c.endings[0]; e.Outcome != checkout.OutcomeLimitReached || e.Repeats != 1 {
				t.Errorf("ended as %+v", e)
			}
		})
	}
}

func TestAChangedItemGetsThePolicyOfItsNewType(t *testing.T) {
	t.Parallel()
	c := &changing{world: newWorld(), change: func(w *world) { w.item.MaterialTypeID = dvdTypeID }}
	c.rules += "m " + dvdTypeID + ": l " + threeID + " r r1 n n1 o " + otherID + " i i1\n"
	if _, err := c.lend(t); err != nil {
		t.Fatal(err)
	}
	if second := string(c.commits[1].Loan); !strings.Contains(second, `"overdueFinePolicyId":"`+otherID+`"`) || c.commits[1].ItemVersion != 5 {
		t.Errorf("committed %s for version %d, want the policies of the new type", second, c.commits[1].ItemVersion)
	}
}

func TestAChangedItemKeepsNothingThatItNoLongerHas(t *testing.T) {
	t.Parallel()
	t.Run("location, holdings and instance", func(t *testing.T) {
		t.Parallel()
		c := &changing{world: newWorld(), lost: errNone, change: func(*world) {}}
		lent, err := c.lend(t)
		if err != nil || lent.Holdings != (checkout.Holdings{}) || lent.Instance.Title != "" {
			t.Errorf("got %+v, %+v, %v, want neither holdings nor instance", lent.Holdings, lent.Instance, err)
		}
	})
	t.Run("its place and its material", func(t *testing.T) {
		t.Parallel()
		c := &changing{world: newWorld(), change: func(w *world) {
			w.item.EffectiveLocationID, w.item.MaterialTypeID = "", ""
		}}
		s := c.service()
		s.Library, s.Committer = c, c
		lent, err := s.CheckOut(asStaff(t, mayLimit), checkout.Request{
			ItemBarcode: "book", UserBarcode: "ann", ServicePointID: deskID, ForceLoanPolicyID: threeID,
		})
		if err != nil || lent.Location.Name != "" || lent.Material.Name != "" {
			t.Errorf("got %+v, %+v, %v, want neither location nor material type", lent.Location, lent.Material, err)
		}
	})
}

func TestAChangedItemIsJudgedByTheQueueThatCountsNow(t *testing.T) {
	t.Parallel()
	c := &changing{world: newWorld(), change: func(w *world) {
		w.titles, w.queue = true, []schemas.QueuedRequest{wish("1", carlID, "Hold", "Title", open, 1)}
	}}
	if _, err := c.lend(t); !fault.Is(err, fault.Invalid) || c.endings[0].Code != checkout.CauseItemRequested || len(c.commits) != 1 {
		t.Errorf("got %v after %d commits, want it refused for the request of another patron", err, len(c.commits))
	}
}
