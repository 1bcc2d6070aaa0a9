package records

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// RequestPolicy lists the allowed kinds of requests (mod-circulation-storage).
var RequestPolicy = Type{
	Name: "request policy", Path: "/request-policy-storage/request-policies", Collection: "requestPolicies",
	Table: "request_policy", Schema: "request-policy", Permission: "circulation-storage.request-policies", Interface: "request-policy-storage 1.0",
	Upsert: true, Lists: []string{"requestTypes"}, Prepare: prepareRequestPolicy,
	Indexes: newIndexes(fields{Text: {"name", "description", "requestTypes"}}),
	Unique:  uniqueFields("request_policy", "name"),
}

// prepareRequestPolicy refuses a service point that does not exist or is no pickup location, with
// mod-circulation-storage's code and text. It reads them in the order of their ids, because it locks
// each.
func prepareRequestPolicy(ctx context.Context, r Reader, w Write) error {
	var ids []string
	for _, requestType := range []string{schemas.RequestHold, schemas.RequestPage, schemas.RequestRecall} {
		list, _ := w.Record.Object("allowedServicePoints")[requestType].([]any)
		for _, v := range list {
			id, _ := v.(string)
			ids = append(ids, strings.ToLower(id))
		}
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		point, err := r.Read(ctx, ServicePoint.Table, id)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		if point["pickupLocation"] != true {
			return fault.Validation(fault.Refusal("INVALID_ALLOWED_SERVICE_POINT", "One or more Pickup locations are no longer available",
				fault.Param("allowedServicePoints", id)))
		}
	}
	return nil
}

// PatronNoticePolicy says which notices patrons get (mod-circulation-storage).
var PatronNoticePolicy = Type{
	Name: "patron notice policy", Path: "/patron-notice-policy-storage/patron-notice-policies", Collection: "patronNoticePolicies",
	Table: "patron_notice_policy", Schema: "patron-notice-policy", Permission: "circulation-storage.patron-notice-policies", Interface: "patron-notice-policy-storage 0.13",
	Lists:   []string{"loanNotices", "requestNotices", "feeFineNotices"},
	Indexes: newIndexes(fields{Text: {"name", "description", "loanNotices", "requestNotices", "feeFineNotices"}, Boolean: {"active"}}),
	Unique:  []Unique{{Constraint: "patron_notice_policy_name_key", Fields: []string{"name"}, DetailCode: "duplicate.name"}},
}

// OverdueFinePolicy is the policy of fines for late returns (mod-feesfines).
var OverdueFinePolicy = newFeePolicy("overdue fine policy", "/overdue-fines-policies", "overdueFinePolicies", "Overdue fine", "feesfines.policy.overdue.duplicate")

// LostItemFeePolicy is the policy of fees for lost items (mod-feesfines).
var LostItemFeePolicy = newFeePolicy("lost item fee policy", "/lost-item-fees-policies", "lostItemFeePolicies", "Lost item fee", "feesfines.policy.lost.duplicate")

// newFeePolicy returns a type of mod-feesfines, whose refusals call it shown. A name that another policy
// has is refused with the code.
func newFeePolicy(name, path, collection, shown, duplicate string) Type {
	table := strings.ReplaceAll(name, " ", "_")
	return Type{
		Name: name, Path: path, Collection: collection, Table: table, Schema: strings.ReplaceAll(name, " ", "-"),
		Permission: path[1:], Interface: feesFines,
		Indexes: newIndexes(fields{Text: {"name", "description"}}),
		Unique: []Unique{{
			Constraint: table + "_name_key", Fields: []string{"name"},
			Message:    "The " + shown + " policy name entered already exists. Please enter a different name.",
			DetailCode: duplicate,
		}},
	}
}

// CirculationSetting is a named setting of the tenant (mod-circulation-storage). For
// example, generalTlr switches title-level requests.
var CirculationSetting = Type{
	Name: "circulation setting", Path: "/circulation-settings-storage/circulation-settings", Collection: "circulationSettings",
	Table: "circulation_settings", Schema: "circulation-setting", Permission: "circulation-storage.circulation-settings", Interface: "circulation-settings-storage 1.0",
	Named:   true,
	Indexes: newIndexes(fields{Text: {"name"}}),
	Unique:  uniqueFields("circulation_settings", "name"),
}

// FixedDueDateSchedule maps ranges of loan dates to due dates (mod-circulation-storage).
var FixedDueDateSchedule = Type{
	Name: "fixed due date schedule", Path: "/fixed-due-date-schedule-storage/fixed-due-date-schedules", Collection: "fixedDueDateSchedules",
	Table: "fixed_due_date_schedule", Schema: "fixed-due-date-schedule", Permission: "circulation-storage.fixed-due-date-schedules", Interface: "fixed-due-date-schedules-storage 2.0",
	Upsert: true, Lists: []string{"schedules"}, Prepare: prepareSchedule,
	Indexes: newIndexes(fields{Text: {"name", "description"}}),
	Unique:  uniqueFields("fixed_due_date_schedule", "name"),
}

// span is one entry of a schedule.
type span struct {
	at            int // the index in the list
	from, to, due time.Time
}

// prepareSchedule refuses ranges that contradict themselves, with
// mod-circulation-storage's messages, and ranges that overlap. A range may begin at the
// end of another.
func prepareSchedule(_ context.Context, _ Reader, w Write) error {
	spans := readSpans(w.Record)
	var wrong fault.List
	refuse := func(s span, field string, at time.Time, format string, args ...any) {
		wrong = append(wrong, fault.StorageDetail("Unable to save fixed loan date. Date range not valid "+fmt.Sprintf(format, args...),
			fault.Param(fmt.Sprintf("schedules[%d].%s", s.at, field), at.UTC().Format(schemas.FolioTime))))
	}
	for _, s := range spans {
		switch {
		case s.from.After(s.due):
			refuse(s, "from", s.from, "from date after due date")
		case s.from.After(s.to):
			refuse(s, "from", s.from, "from date after to date")
		case s.to.After(s.due):
			refuse(s, "to", s.to, "to date after due date")
		}
	}
	if len(wrong) == 0 {
		slices.SortStableFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
		for i := 1; i < len(spans); i++ {
			if earlier := spans[i-1]; spans[i].from.Before(earlier.to) {
				refuse(spans[i], "from", spans[i].from, "from date before the to date of schedules[%d]", earlier.at)
			}
		}
	}
	return wrong.Err()
}

// readSpans reads the list that the schema has checked.
func readSpans(schedule Record) []span {
	list, _ := schedule["schedules"].([]any)
	spans := make([]span, 0, len(list))
	for i, v := range list {
		object, _ := v.(map[string]any)
		s := span{at: i}
		for field, at := range map[string]*time.Time{"from": &s.from, "to": &s.to, "due": &s.due} {
			text := Record(object).Text(field)
			*at, _ = jsonschema.ParseTime(text)
		}
		spans = append(spans, s)
	}
	return spans
}
