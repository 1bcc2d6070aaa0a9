package requests

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// Reorder puts the queue of an item, or of a title, into the order of the body {reorderedQueue:
// [{id, newPosition}]}, and returns it. It sends the positions that it read, so of two orders at
// once the second is refused.
//
// Faults: NotFound for an empty queue; Invalid in FOLIO's words.
func (s *Service) Reorder(ctx context.Context, id string, ofTitle bool, body []byte) ([]json.RawMessage, error) {
	order := schemas.QueueOrder{ItemID: id}
	read, key, kind := s.Keeper.ItemQueue, "itemId", "Item"
	if ofTitle {
		order, read, key, kind = schemas.QueueOrder{InstanceID: id}, s.Keeper.TitleQueue, "instanceId", "Instance"
	}
	sent, err := jsonschema.ReadChecked[reorderedQueue]("reordered-queue", body)
	if err != nil {
		return nil, err
	}
	if err := s.checkTitles(ctx, ofTitle, key, id); err != nil {
		return nil, err
	}
	queue, err := readQueue(read(ctx, id))
	if err != nil {
		return nil, err
	}
	order.ID, order.Queue = uuid.NewString(), sent.listPlaces(queue)
	send := func(ctx context.Context) (schemas.OrderedQueue, error) { return s.Keeper.OrderQueue(ctx, order) }
	ordered, err := library.FinishCommit(ctx, s.Log.With("change_id", order.ID, "item_id", order.ItemID, "instance_id", order.InstanceID), "the order of a queue", send)
	switch {
	case fault.Is(err, fault.RequestChanged):
		if err := s.checkTitles(ctx, ofTitle, key, id); err != nil {
			return nil, err // the setting changed
		}
		return nil, fault.Validation(fault.Refusal(schemas.CodeQueueOutdated, schemas.QueueOutdated))
	case fault.Is(err, fault.NotFound):
		return nil, fault.Wrap(err, fault.NotFound, "%s record with ID %q cannot be found", kind, id)
	}
	return ordered.Requests, err
}

// checkTitles refuses the queue of an item while its title has one, and the other way round.
func (s *Service) checkTitles(ctx context.Context, ofTitle bool, key, id string) error {
	titles, err := s.Library.TitleLevelRequests(ctx)
	if err != nil || titles == ofTitle {
		return err
	}
	state, code := "DISABLED", codeTitlesDisabled
	if titles {
		state, code = "ENABLED", codeTitlesEnabled
	}
	return fault.Validation(fault.Refusal(code, "Refuse to reorder request queue, TLR feature status is "+state+".", fault.Param(key, id)))
}

// reorderedQueue is the body of an order. It ignores what else clients send, such as another itemId.
type reorderedQueue struct {
	Requests []struct {
		ID          string             `json:"id"`
		NewPosition policy.WholeNumber `json:"newPosition"`
	} `json:"reorderedQueue"`
}

// listPlaces returns the places of the requests, with the positions that they have in the queue.
func (r reorderedQueue) listPlaces(queue []schemas.QueuedRequest) []schemas.QueuePlace {
	saw := map[string]int{}
	for _, request := range queue {
		saw[request.ID] = request.Position
	}
	places := make([]schemas.QueuePlace, len(r.Requests))
	for i, sent := range r.Requests {
		places[i] = schemas.QueuePlace{ID: sent.ID, Position: saw[strings.ToLower(sent.ID)], NewPosition: int(sent.NewPosition)}
	}
	return places
}

// readQueue reads the requests of a stored queue.
func readQueue(stored []json.RawMessage, err error) ([]schemas.QueuedRequest, error) {
	queue := make([]schemas.QueuedRequest, len(stored))
	for i := range stored {
		if err := json.Unmarshal(stored[i], &queue[i]); err != nil {
			return nil, fmt.Errorf("reading the stored queue: %w", err)
		}
	}
	return queue, err
}
