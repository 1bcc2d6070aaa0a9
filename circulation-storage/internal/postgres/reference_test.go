package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

// named is a record and another one that names it.
type named struct {
	typ records.Type
	id  string
	// by writes a record that names the record id, under an id of its own each time.
	by func(ctx context.Context, id string) error
	// referrer and field are how the refusal describes what by wrote.
	referrer, field string
	mayMiss         bool // a record may name a missing one
}

// writeNamed returns how to create a record of a type with one field changed.
func (l library) writeNamed(t *testing.T, typ records.Type, template object,
	set func(o object, id string),
) func(context.Context, string) error {
	return func(ctx context.Context, id string) error {
		o := object{}
		for key, value := range template {
			o[key] = value
		}
		for _, key := range []string{"name", "code"} {
			if _, ok := o[key]; ok {
				o[key] = uuid.NewString()
			}
		}
		set(o, id)
		_, err := l.store.Create(ctx, typ, parse(t, typ, o, ""))
		return err
	}
}

func rulesWith(letter, id string) string {
	return "priority: last-line\nfallback-policy: l a r b n c o d i e # l " + uuid.NewString() + "\nm book-" + letter +
		" x: " + letter + " " + id + "\n"
}

// references returns one case for each reference, besides those of items and holdings.
func (l library) references(t *testing.T) map[string]named {
	t.Helper()
	rules := postgres.NewRecordStore(l.db, func() {})
	nameInRules := func(letter string) func(context.Context, string) error {
		return func(ctx context.Context, id string) error { return rules.SetRules(ctx, rulesWith(letter, id), true) }
	}
	location := l.newLocation(t, uuid.NewString())
	policy := object{"name": "p", "loanable": true, "renewable": true}
	field := func(name string) func(object, string) { return func(o object, id string) { o[name] = id } }
	name := func() object { return object{"name": uuid.NewString(), "code": uuid.NewString()} }
	schedule := func() string {
		return l.create(t, records.FixedDueDateSchedule, object{"name": uuid.NewString()}).ID()
	}
	desk := func() string { return l.create(t, records.ServicePoint, name()).ID() }
	institution := l.create(t, records.Institution, name()).ID()
	newCampus := setField(name(), "institutionId", institution)
	campus := l.create(t, records.Campus, newCampus).ID()
	request := object{
		"instanceId": uuid.NewString(), "requesterId": uuid.NewString(), "requestType": "Hold", "requestLevel": "Title",
		"requestDate": "2026-03-01T10:00:00Z", "fulfillmentPreference": "Delivery", "status": "Closed - Cancelled",
	}
	newAddressType := func() string {
		return l.create(t, records.AddressType, object{"addressType": uuid.NewString()}).ID()
	}
	branch := setField(name(), "campusId", campus)
	return map[string]named{
		"a schedule of a policy": {
			typ: records.FixedDueDateSchedule, id: schedule(),
			by: l.writeNamed(t, records.LoanPolicy, policy, func(o object, id string) {
				o["loansPolicy"] = object{"profileId": "Fixed", "fixedDueDateScheduleId": id}
			}), referrer: "loan policy", field: "loansPolicy.fixedDueDateScheduleId", mayMiss: false,
		},
		"a schedule of renewals": {
			typ: records.FixedDueDateSchedule, id: schedule(),
			by: l.writeNamed(t, records.LoanPolicy, policy, func(o object, id string) {
				o["renewalsPolicy"] = object{"differentPeriod": true, "alternateFixedDueDateScheduleId": id}
			}), referrer: "loan policy", field: "renewalsPolicy.alternateFixedDueDateScheduleId", mayMiss: false,
		},
		"a location's service point": {
			typ: records.ServicePoint, id: desk(),
			by: l.writeNamed(t, records.Location, location, func(o object, id string) {
				o["servicePointIds"] = []string{id, id}
			}), referrer: "location", field: "servicePointIds", mayMiss: true,
		},
		"a location's first service point": {
			typ: records.ServicePoint, id: desk(),
			by: l.writeNamed(t, records.Location, location, field("primaryServicePoint")), referrer: "location",
			field: "primaryServicePoint", mayMiss: true,
		},
		"a location's institution": {
			typ: records.Institution, id: l.create(t, records.Institution, name()).ID(),
			by: l.writeNamed(t, records.Location, location, field("institutionId")), referrer: "location",
			field: "institutionId", mayMiss: false,
		},
		"a location's campus": {
			typ: records.Campus, id: l.create(t, records.Campus, setField(newCampus, "name", uuid.NewString())).ID(),
			by: l.writeNamed(t, records.Location, location, field("campusId")), referrer: "location", field: "campusId",
			mayMiss: false,
		},
		"a location's library": {
			typ: records.Library, id: l.create(t, records.Library, branch).ID(),
			by: l.writeNamed(t, records.Location, location, field("libraryId")), referrer: "location", field: "libraryId",
			mayMiss: false,
		},
		"a loan policy of the rules": {
			typ: records.LoanPolicy, id: l.create(t, records.LoanPolicy, setField(policy, "name", uuid.NewString())).ID(),
			by: nameInRules("l"), referrer: "circulation rules", field: "rulesAsText", mayMiss: false,
		},
		"a request policy of the rules": {
			typ: records.RequestPolicy, id: l.create(t, records.RequestPolicy, object{"name": uuid.NewString()}).ID(),
			by: nameInRules("r"), referrer: "circulation rules", field: "rulesAsText", mayMiss: false,
		},
		"a notice policy of the rules": {
			typ: records.PatronNoticePolicy,
			id:  l.create(t, records.PatronNoticePolicy, object{"name": uuid.NewString()}).ID(), by: nameInRules("n"),
			referrer: "circulation rules", field: "rulesAsText", mayMiss: false,
		},
		"an overdue fine policy of the rules": {
			typ: records.OverdueFinePolicy,
			id:  l.create(t, records.OverdueFinePolicy, object{"name": uuid.NewString()}).ID(), by: nameInRules("o"),
			referrer: "circulation rules", field: "rulesAsText", mayMiss: false,
		},
		"a lost item fee policy of the rules": {
			typ: records.LostItemFeePolicy,
			id:  l.create(t, records.LostItemFeePolicy, object{"name": uuid.NewString()}).ID(), by: nameInRules("i"),
			referrer: "circulation rules", field: "rulesAsText", mayMiss: false,
		},
		"a reason of a cancelled request": {
			typ: records.CancellationReason, id: l.create(t, records.CancellationReason, name()).ID(),
			by: l.writeNamed(t, records.Request, request, field("cancellationReasonId")), referrer: "request",
			field: "cancellationReasonId", mayMiss: false,
		},
		"an address type of a request": {
			typ: records.AddressType, id: newAddressType(),
			by: l.writeNamed(t, records.Request, request, field("deliveryAddressTypeId")), referrer: "request",
			field: "deliveryAddressTypeId", mayMiss: true,
		},
		"an address type of a patron": {
			typ: records.AddressType, id: newAddressType(),
			by: l.writeNamed(t, records.User, object{}, func(o object, id string) {
				o["personal"] = object{
					"lastName": "Two", "addresses": []object{{"city": "Bath"}, {"addressTypeId": id}, {"addressTypeId": id}},
				}
			}), referrer: "user", field: "personal.addresses", mayMiss: true,
		},
		"a patron's group": {
			typ: records.Usergroup, id: l.create(t, records.Usergroup, object{"group": uuid.NewString()}).ID(),
			by: l.writeNamed(t, records.User, object{}, field("patronGroup")), referrer: "user", field: "patronGroup",
			mayMiss: false,
		},
	}
}

func setField(o object, name string, value any) object {
	changed := object{name: value}
	for key, v := range o {
		if key != name {
			changed[key] = v
		}
	}
	return changed
}

func TestReferences(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	for name, n := range l.references(t) {
		t.Run(name, func(t *testing.T) {
			missing := uuid.NewString()
			err := n.by(l.in(t), missing)
			want := n.field + " = " + missing + " because it does not exist in " + n.typ.Table + ".id."
			switch {
			case n.mayMiss && err != nil:
				t.Errorf("got %v for a missing record", err)
			case !n.mayMiss && (!fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want)):
				t.Errorf("got %v, want it to say %q", err, want)
			}
			if err := n.by(l.in(t), n.id); err != nil {
				t.Fatal(err)
			}
			err = l.store.Delete(l.in(t), n.typ, n.id)
			wantCode(t, err, fault.Invalid)
			var f *fault.Error
			start := "Cannot delete " + n.typ.Table + ".id = " + n.id + " because id is still referenced from table "
			if !errors.As(err, &f) || !strings.HasPrefix(f.Msg, start) || !strings.Contains(f.Msg, ". The "+n.referrer+" ") ||
				!strings.HasSuffix(f.Msg, " names it in "+n.field+".") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestReferences_EndWithTheRecordOrItsField(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	location := l.create(t, records.Location, l.newLocation(t, "main"))
	first, second := l.create(t, records.ServicePoint, object{"name": "1", "code": "1"}), l.create(t,
		records.ServicePoint, object{"name": "2", "code": "2"})
	location["servicePointIds"] = []string{first.ID(), second.ID()}
	if err := l.update(t, records.Location, location); err != nil {
		t.Fatal(err)
	}
	location["servicePointIds"] = []string{second.ID()}
	if err := l.update(t, records.Location, location); err != nil {
		t.Fatal(err)
	}
	if err := l.store.Delete(l.in(t), records.ServicePoint, first.ID()); err != nil {
		t.Errorf("a service point that the location no longer names: %v", err)
	}
	wantCode(t, l.store.Delete(l.in(t), records.ServicePoint, second.ID()), fault.Invalid)
	if err := l.store.Delete(l.in(t), records.Location, location.ID()); err != nil {
		t.Fatal(err)
	}
	if err := l.store.Delete(l.in(t), records.ServicePoint, second.ID()); err != nil {
		t.Errorf("a service point of a deleted location: %v", err)
	}

	home, work := l.create(t, records.AddressType, object{"addressType": "1"}), l.create(t, records.AddressType,
		object{"addressType": "2"})
	at := func(ids ...string) object {
		addresses := []object{}
		for _, id := range ids {
			addresses = append(addresses, object{"addressTypeId": id})
		}
		return object{"lastName": "Two", "addresses": addresses}
	}
	patron := l.create(t, records.User, object{"personal": at(home.ID(), work.ID())})
	patron["personal"] = at(work.ID())
	if err := l.update(t, records.User, patron); err != nil {
		t.Fatal(err)
	}
	if err := l.store.Delete(l.in(t), records.AddressType, home.ID()); err != nil {
		t.Errorf("an address type that the patron no longer has: %v", err)
	}
	wantCode(t, l.store.Delete(l.in(t), records.AddressType, work.ID()), fault.Invalid)
	if err := l.store.Delete(l.in(t), records.User, patron.ID()); err != nil {
		t.Fatal(err)
	}
	if err := l.store.Delete(l.in(t), records.AddressType, work.ID()); err != nil {
		t.Errorf("an address type of a deleted patron: %v", err)
	}

	rules := postgres.NewRecordStore(l.db, func() {})
	policy := l.create(t, records.LoanPolicy, object{"name": "p", "loanable": true, "renewable": true})
	for _, text := range []string{
		rulesWith("l", policy.ID()), "# l " + policy.ID(), "m l " + strings.ToUpper(policy.ID()), "/ l " + policy.ID() +
			"\nm x-l " + policy.ID(),
		"l " + policy.ID() + "-x", "x " + policy.ID(), rulesWith("n", "none"),
	} {
		if err := rules.SetRules(l.in(t), text, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.store.Delete(l.in(t), records.LoanPolicy, policy.ID()); err != nil {
		t.Errorf("a policy that the rules name no longer: %v", err)
	}
}

// Of a DELETE and a write that names the record at the same time, exactly one succeeds.
func TestReferences_DeleteAndWriteAtOnce(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	for range 5 {
		for name, n := range l.references(t) {
			t.Run(name, func(t *testing.T) {
				start := make(chan struct{})
				var both sync.WaitGroup
				var deleted, written error
				both.Go(func() { <-start; deleted = l.store.Delete(l.in(t), n.typ, n.id) })
				both.Go(func() { <-start; written = n.by(l.in(t), n.id) })
				close(start)
				both.Wait()
				switch got := fmt.Sprint(fault.CodeOf(deleted), "|", fault.CodeOf(written)); {
				case got == "|INVALID", got == "INVALID|":
				case got == "|" && n.mayMiss: // the write came after the DELETE
				default:
					t.Errorf("got %v and %v, want one success and one refusal", deleted, written)
				}
			})
		}
	}
}

// Tenants that had records before the references may have dangling ones. These stay, the rest is kept.
func TestReferences_OfTenantsInstalledBefore(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	ctx := l.in(t)
	desk, policy, missing, location := uuid.NewString(), uuid.NewString(), uuid.NewString(), uuid.NewString()
	pickup, holds := uuid.NewString(), uuid.NewString()
	stored := object{
		"id": location, "name": "n", "code": "c", "institutionId": missing, "campusId": missing, "libraryId": missing,
		"primaryServicePoint": missing, "servicePointIds": []string{desk, missing},
	}
	policyDoc := object{
		"id": policy, "name": "p", "loanable": true, "renewable": true,
		"loansPolicy": object{"fixedDueDateScheduleId": missing},
	}
	for _, r := range []struct {
		table string
		doc   object
	}{
		{"service_point", object{"id": desk, "name": "d", "code": "d"}},
		{"location", stored},
		{"loan_policy", policyDoc},
		{"service_point", object{"id": pickup, "name": "p", "code": "p"}},
		{
			"request_policy",
			object{
				"id": holds, "name": "h",
				"allowedServicePoints": object{"Hold": []string{missing, pickup}, "Wish": []string{"none"}},
			},
		},
		{"request_policy", object{"id": missing, "name": "m", "allowedServicePoints": nil}},
	} {
		raw, err := json.Marshal(r.doc)
		if err != nil {
			t.Fatal(err)
		}
		l.executeStatements(t, fmt.Sprintf(`
ALTER TABLE S.%[1]s DISABLE TRIGGER ALL;
INSERT INTO S.%[1]s (id, jsonb) VALUES ('%[2]s', '%[3]s');
ALTER TABLE S.%[1]s ENABLE TRIGGER ALL`, r.table, r.doc["id"], raw))
		l.executeStatements(t, `UPDATE S.`+r.table+` SET jsonb = jsonb`) // the triggers link what exists
	}
	l.executeStatements(t, fmt.Sprintf(`UPDATE S.circulation_rules SET rules = 'l %s r %s'`, policy, missing))
	wantCode(t, l.store.Delete(ctx, records.ServicePoint, desk), fault.Invalid)
	if err := l.store.Delete(ctx, records.ServicePoint, pickup); err != nil {
		t.Error(err)
	}
	if got, want := l.allowed(t, holds, nil), "map[Hold:["+missing+"] Wish:[none]]"; got != want {
		t.Errorf("the request policy allows %s, want %s", got, want)
	}
	wantCode(t, l.store.Delete(ctx, records.LoanPolicy, policy), fault.Invalid)
	if err := l.update(t, records.LoanPolicy, setField(policyDoc, "renewable", false)); err != nil {
		t.Errorf("a write that leaves what is dangling: %v", err)
	}
	wantCode(t, l.update(t, records.Location, setField(stored, "campusId", uuid.NewString())), fault.Invalid)
}
