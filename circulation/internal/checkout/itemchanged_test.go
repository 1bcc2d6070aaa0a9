package checkout_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const dvdTypeID = "5ee11d91-f7e8-481d-b079-65d708582ccc"

// changing is a library whose item changes while its first commit is under way.
type changing struct {
	*backend
	change    func(*backend)
	withdrawn bool           // the changed item has no holdings record any more
	loans     map[string]int // open loans by material type, as the snapshots have them
}

func (c *changing) CheckOut(ctx context.Context, body schemas.CheckOut) (schemas.CheckOutResult, error) {
	if len(c.commits) == 0 && !c.refusesTurn(body) {
		c.change(c.backend)
		c.Book.Version++
		c.commit = []error{errChanged}
	}
	return c.backend.CheckOut(ctx, body)
}

func (c *changing) Snapshot(ctx context.Context, subjects schemas.CheckOutSubjects) (library.Facts, error) {
	seen, err := c.backend.Snapshot(ctx, subjects)
	if seen.User.ID != "" {
		seen.OpenLoans = nil
		for id, n := range c.loans {
			seen.OpenLoans = append(seen.OpenLoans, schemas.OpenLoans{MaterialTypeID: id, Count: n})
		}
	}
	if c.withdrawn && subjects.ItemID != "" {
		seen.Holdings, seen.Instance = library.Holdings{}, library.Instance{}
	}
	return seen, err
}

// lend checks the book out.
func (c *changing) lend(t *testing.T) (checkout.Lent, error) {
	t.Helper()
	s := c.service()
	s.Library, s.Committer = c, c
	return s.CheckOut(t.Context(), checkout.Request{
		ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID,
	})
}

func TestChangedItem_HasTheLimitOfItsNewType(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]settings.Settings{
		"with the lock":    newBackend().set,
		"without the lock": {Version: "7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &changing{
				backend: newBackend(), loans: map[string]int{librarytest.BookTypeID: 2, dvdTypeID: 3},
				change: func(w *backend) { w.Book.MaterialTypeID = dvdTypeID },
			}
			c.set = set
			c.RulesText += "m " + dvdTypeID + ": l " + librarytest.ThreeID + " r r1 n n1 o o1 i i1\n"
			_, err := c.lend(t)
			if want := []string{
				"Patron has reached maximum limit of 3 items for material type",
			}; !slices.Equal(librarytest.Messages(err), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			if len(c.commits) != 1 {
				t.Errorf("committed %d times, want a refusal by the count of the new type", len(c.commits))
			}
			if e := c.endings[0]; e.Outcome != checkout.OutcomeLimitReached || e.Repeats != 1 {
				t.Errorf("ended as %+v", e)
			}
		})
	}
}

func TestChangedItem_IsCountedByItsNewType(t *testing.T) {
	t.Parallel()
	c := &changing{backend: newBackend(), change: func(w *backend) { w.Book.MaterialTypeID, w.open = dvdTypeID, []int{3} }}
	c.RulesText += "m " + dvdTypeID + ": l " + librarytest.ThreeID + " r r1 n n1 o o1 i i1\n"
	_, err := c.lend(t)
	if want := []string{
		"Patron has reached maximum limit of 3 items for material type",
	}; !slices.Equal(librarytest.Messages(err), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if len(c.commits) != 2 || c.commits[0].Limits[0].MaterialTypeID != librarytest.BookTypeID ||
		c.commits[1].Limits[0].MaterialTypeID != dvdTypeID {
		t.Errorf("committed %+v, want the limit of the old type and then that of the new one", c.commits)
	}
}

func TestChangedItem_HasThePolicyOfItsNewType(t *testing.T) {
	t.Parallel()
	c := &changing{backend: newBackend(), change: func(w *backend) { w.Book.MaterialTypeID = dvdTypeID }}
	c.RulesText += "m " + dvdTypeID + ": l " + librarytest.ThreeID + " r r1 n n1 o " + librarytest.OtherID + " i i1\n"
	if _, err := c.lend(t); err != nil {
		t.Fatal(err)
	}
	if second := string(c.commits[1].Loan); !strings.Contains(second, `"overdueFinePolicyId":"`+librarytest.OtherID+`"`) ||
		c.commits[1].ItemVersion != 5 {
		t.Errorf("committed %s for version %d, want the policies of the new type", second, c.commits[1].ItemVersion)
	}
}

func TestChangedItem_KeepsNothingOld(t *testing.T) {
	t.Parallel()
	t.Run("location, holdings and instance", func(t *testing.T) {
		t.Parallel()
		c := &changing{backend: newBackend(), withdrawn: true, change: func(*backend) {}}
		lent, err := c.lend(t)
		if err != nil || lent.Copy.Holdings != (library.Holdings{}) || lent.Copy.Instance.Title != "" || lent.Group.ID == "" {
			t.Errorf("got %+v, %+v, %v, want neither holdings nor instance", lent.Copy.Holdings, lent.Copy.Instance, err)
		}
	})
	t.Run("its place and its material", func(t *testing.T) {
		t.Parallel()
		c := &changing{backend: newBackend(), change: func(w *backend) {
			w.Book.EffectiveLocationID, w.Book.MaterialTypeID = "", ""
		}}
		s := c.service()
		s.Library, s.Committer = c, c
		lent, err := s.CheckOut(asStaff(t, mayLimit), checkout.Request{
			ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID, ForceLoanPolicyID: librarytest.ThreeID,
		})
		if err != nil || lent.Copy.Location.Name != "" || lent.Copy.Material.Name != "" {
			t.Errorf("got %+v, %+v, %v, want neither location nor material type", lent.Copy.Location, lent.Copy.Material, err)
		}
	})
}

func TestChangedItem_HasItsNewQueue(t *testing.T) {
	t.Parallel()
	c := &changing{backend: newBackend(), change: func(w *backend) {
		w.Titles, w.Queue = true, []schemas.QueuedRequest{
			librarytest.NewRequest("1", librarytest.CarlID, "Hold", "Title", open, 1),
		}
	}}
	if _, err := c.lend(t); !fault.Is(err, fault.Invalid) || c.endings[0].Code != library.CodeItemRequested ||
		len(c.commits) != 1 {
		t.Errorf("got %v after %d commits, want it refused for the request of another patron", err, len(c.commits))
	}
}
