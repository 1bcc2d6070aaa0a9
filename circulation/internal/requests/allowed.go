package requests

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// AllowedQuestion asks where a patron may fetch what is requested, before it is requested.
type AllowedQuestion struct {
	// Operation is create, replace (an edit) or move, in any case.
	Operation                  string
	RequesterID, PatronGroupID string
	InstanceID, ItemID         string // for create: exactly one of them is set
	RequestID                  string // for replace and move
}

// AllowedPoint is a service point at which a request may be fetched.
type AllowedPoint struct {
	ID            string `json:"id"`
	Name          string `json:"name"`
	DiscoveryName string `json:"discoveryDisplayName,omitempty"`
}

// AllowedPoints lists the pickup locations by the types of requests that the items' statuses and
// the request policies allow. A type without any is absent. An edit may keep a type that the status
// would not allow anew. Faults: Malformed for a question that is none; Invalid for records that do
// not exist; Internal for faults of stored configuration.
func (s *Service) AllowedPoints(ctx context.Context, q AllowedQuestion) (map[string][]AllowedPoint, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	q, err := s.completeQuestion(ctx, q)
	if err != nil {
		return nil, err
	}
	items, err := s.findItems(ctx, q)
	if err != nil {
		return nil, err
	}
	points, err := s.Library.PickupPoints(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the pickup locations: %w", err)
	}
	if len(items) == 0 {
		return s.allowWithoutItems(ctx, q, points)
	}
	allowed := map[string][]AllowedPoint{}
	for _, some := range groupItems(items, q.PatronGroupID) {
		p, err := s.matchPolicy(ctx, some.criteria)
		if err != nil {
			return nil, err
		}
		for _, kind := range requestTypes {
			if p.AllowsType(kind) && (q.is(replacing) || len(some.list(kind)) > 0) {
				allowed[kind] = append(allowed[kind], choosePoints(p, kind, points)...)
			}
		}
	}
	for kind, list := range allowed {
		allowed[kind] = sortPoints(list)
	}
	maps.DeleteFunc(allowed, func(_ string, list []AllowedPoint) bool { return len(list) == 0 })
	return allowed, nil
}

const (
	creating  = "create"
	replacing = "replace"
	moving    = "move"
)

var requestTypes = [...]string{schemas.RequestPage, schemas.RequestHold, schemas.RequestRecall}

func (q AllowedQuestion) is(operation string) bool { return strings.EqualFold(q.Operation, operation) }

const allowedCombinations = "Allowed are operation=create with requesterId or patronGroupId and with instanceId or itemId, " +
	"operation=replace with requestId, and operation=move with requestId and itemId."

// check refuses a question in FOLIO's words, and says which are allowed.
func (q AllowedQuestion) check() error {
	var wrong []string
	for _, id := range [...]struct{ name, value string }{
		{"Requester ID", q.RequesterID}, {"Patron Group ID", q.PatronGroupID}, {"Instance ID", q.InstanceID}, {"Item ID", q.ItemID}, {"Request ID", q.RequestID},
	} {
		if id.value != "" && !schemas.IsUUID(id.value) {
			wrong = append(wrong, fmt.Sprintf("%s is not a valid UUID: %s.", id.name, fault.Shown(id.value)))
		}
	}
	created := q.is(creating) && (q.RequesterID != "" || q.PatronGroupID != "") && q.RequestID == "" && (q.InstanceID == "") != (q.ItemID == "")
	changed := q.RequestID != "" && q.RequesterID == "" && q.InstanceID == "" && (q.is(replacing) && q.ItemID == "" || q.is(moving) && q.ItemID != "")
	if !created && !changed {
		wrong = append(wrong, "Invalid combination of query parameters. "+allowedCombinations)
	}
	if len(wrong) > 0 {
		return fault.New(fault.Malformed, "%s", strings.Join(wrong, " "))
	}
	return nil
}

// completeQuestion adds what the stored request says, and the patron's group.
func (s *Service) completeQuestion(ctx context.Context, q AllowedQuestion) (AllowedQuestion, error) {
	if q.RequestID != "" {
		doc, err := s.readStored(ctx, q.RequestID)
		if err != nil {
			return q, refuseMissing(err, "Request", q.RequestID)
		}
		stored, err := readQueued(doc)
		if err != nil {
			return q, err
		}
		q.RequesterID = stored.RequesterID
		switch {
		case q.is(moving):
		case stored.RequestLevel == forTitle:
			q.InstanceID = stored.InstanceID
		default:
			q.ItemID = stored.ItemID
		}
	}
	if q.PatronGroupID != "" {
		return q, nil
	}
	user, err := s.Library.User(ctx, q.RequesterID)
	q.PatronGroupID = user.PatronGroup
	return q, refuseMissing(err, "User", q.RequesterID)
}

// refuseMissing makes a refusal of the error that a record does not exist; other errors pass.
func refuseMissing(err error, kind, id string) error {
	if fault.Is(err, fault.NotFound) {
		return fault.Validation(fault.Refusal(strings.ToUpper(kind)+"_NOT_FOUND", fmt.Sprintf("%s with ID %s was not found", kind, id)))
	}
	return err
}

// findItems returns the item in question, or all of the instance.
func (s *Service) findItems(ctx context.Context, q AllowedQuestion) ([]library.Item, error) {
	if q.ItemID != "" {
		item, found, err := fault.Found(s.Library.Item(ctx, q.ItemID))
		if err == nil && !found {
			err = fault.Validation(fault.Refusal(library.CodeItemUnknown, fmt.Sprintf("Item with id=%s cannot be found", q.ItemID)))
		}
		return []library.Item{item}, err
	}
	if _, err := s.Library.Instance(ctx, q.InstanceID); err != nil {
		return nil, refuseMissing(err, "Instance", q.InstanceID)
	}
	items, err := s.Library.TitleItems(ctx, q.InstanceID)
	if err != nil {
		return nil, fmt.Errorf("listing the items of the instance: %w", err)
	}
	return items, nil
}

// allowWithoutItems answers for a title without copies. Only a hold can be placed, unless holds ask
// the policies, because there is no copy for which one could be chosen.
func (s *Service) allowWithoutItems(ctx context.Context, q AllowedQuestion, points []library.ServicePoint) (map[string][]AllowedPoint, error) {
	allowed := map[string][]AllowedPoint{}
	titles, err := s.Library.TitleLevelRequests(ctx)
	if err != nil || !titles || !q.is(creating) || len(points) == 0 {
		return allowed, err
	}
	asked, err := s.Library.TitleHoldsObeyRules(ctx)
	if !asked {
		allowed[schemas.RequestHold] = sortPoints(choosePoints(policy.RequestPolicy{}, schemas.RequestHold, points))
	}
	return allowed, err
}

// alike are items for which the rules choose the same policy.
type alike struct {
	criteria policy.Criteria
	items    []library.Item
}

// list returns the items whose status allows the type of request.
func (a alike) list(requestType string) []library.Item {
	return slices.DeleteFunc(slices.Clone(a.items), func(i library.Item) bool { return !slices.Contains(listStatuses(requestType), i.Status.Name) })
}

func groupItems(items []library.Item, groupID string) []alike {
	var all []alike
	for _, item := range items {
		c := policy.Criteria{MaterialType: item.MaterialTypeID, LoanType: item.LoanTypeID(), PatronGroup: groupID, Location: item.EffectiveLocationID}
		at := slices.IndexFunc(all, func(a alike) bool { return a.criteria == c })
		if at < 0 {
			at, all = len(all), append(all, alike{criteria: c})
		}
		all[at].items = append(all[at].items, item)
	}
	return all
}

// matchPolicy returns the request policy that the circulation rules choose. Fault: Internal for
// rules that name none.
func (s *Service) matchPolicy(ctx context.Context, c policy.Criteria) (policy.RequestPolicy, error) {
	rules, c, err := library.Matching{Records: s.Library}.RulesFor(ctx, c)
	if err != nil {
		return policy.RequestPolicy{}, err
	}
	return s.findPolicy(ctx, rules, c)
}

// findPolicy is matchPolicy with rules that were read and criteria that are complete.
func (s *Service) findPolicy(ctx context.Context, rules *policy.Rules, c policy.Criteria) (policy.RequestPolicy, error) {
	id := rules.Match(policy.KindRequest, c).PolicyID
	p, err := s.Library.RequestPolicy(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return p, fault.New(fault.Internal, "Request policy %s could not be found, please check circulation rules", id)
	}
	return p, err
}

// choosePoints returns those of the points that the policy allows for the type.
func choosePoints(p policy.RequestPolicy, kind string, points []library.ServicePoint) []AllowedPoint {
	var chosen []AllowedPoint
	for _, point := range points {
		if p.AllowsServicePoint(kind, point.ID) {
			chosen = append(chosen, AllowedPoint{ID: point.ID, Name: point.Name, DiscoveryName: point.DiscoveryDisplayName})
		}
	}
	return chosen
}

// sortPoints orders points by name and leaves out repeated ones.
func sortPoints(points []AllowedPoint) []AllowedPoint {
	slices.SortFunc(points, func(a, b AllowedPoint) int { return strings.Compare(a.Name+"\x00"+a.ID, b.Name+"\x00"+b.ID) })
	return slices.Compact(points)
}
