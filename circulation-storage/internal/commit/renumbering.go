package commit

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
)

// Renumbering gives the open requests of a queue the positions 1, 2, … in their order.
type Renumbering struct {
	InstanceID uuid.UUID // Nil for none, if ItemID is set
	ItemID     uuid.UUID // Nil for the queue of the instance
}

// ID returns the id of the item or the instance whose queue it is.
func (n Renumbering) ID() uuid.UUID { return cmp.Or(n.ItemID, n.InstanceID) }

// Decide leaves a queue that was found by another setting for titles: the next turn finds others. Of
// requests at one position, the one that was requested or stored first goes first.
func (n Renumbering) Decide(ctx context.Context, seen Seen) (Change, error) {
	if (n.ItemID == uuid.Nil) != seen.TitlesOn {
		return Change{}, nil
	}
	queue := seen.Queue.sorted()
	slices.SortStableFunc(queue, func(a, b records.Record) int {
		return cmp.Or(cmp.Compare(readOrder(a), readOrder(b)), compareInstants(a, b, "requestDate"), compareInstants(a, b, "metadata.createdDate"))
	})
	return Change{Requests: seen.Queue.listChanged(queue.renumber(seen.OtherTitles))}.complete(ctx, seen.Now, nil, nil, seen.Queue)
}

func compareInstants(a, b records.Record, field string) int {
	return readInstant(a.Text(field)).Compare(readInstant(b.Text(field)))
}
