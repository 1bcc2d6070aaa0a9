package postgres_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

func (l library) pickupLocation(tb testing.TB) records.Record {
	tb.Helper()
	return l.create(tb, records.ServicePoint, object{
		"name": uuid.NewString(), "code": uuid.NewString(), "discoveryDisplayName": "Desk", "pickupLocation": true,
		"holdShelfExpiryPeriod": object{"duration": 1, "intervalId": "Days"},
	})
}

// allowed returns what the stored policy allows, with the names of ids.
func (l library) allowed(tb testing.TB, policyID string, names map[string]string) string {
	tb.Helper()
	text := fmt.Sprint(l.get(tb, records.RequestPolicy, policyID)["allowedServicePoints"])
	for id, name := range names {
		text = strings.NewReplacer(id, name, strings.ToUpper(id), name).Replace(text)
	}
	return text
}

func TestRequestPolicy_LosesServicePoints(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	all := func(o object) object { return setField(o, "name", uuid.NewString()) }
	for name, tt := range map[string]struct {
		change func(desk, shelf records.Record) error
		want   string
	}{
		"one is deleted": {
			func(desk, _ records.Record) error { return l.store.Delete(l.in(t), records.ServicePoint, desk.ID()) },
			"map[Hold:[shelf] Page:[] Recall:[shelf] Wish:none]",
		},
		"both are deleted": {func(desk, shelf records.Record) error {
			return l.store.DeleteMatching(l.in(t), records.ServicePoint, "id==("+desk.ID()+" or "+shelf.ID()+")")
		}, "map[Hold:[] Page:[] Recall:[] Wish:none]"},
		"one is no pickup location any more": {
			func(desk, _ records.Record) error {
				return l.update(t, records.ServicePoint, setField(desk, "pickupLocation", false))
			},
			"map[Hold:[shelf] Page:[] Recall:[shelf] Wish:none]",
		},
		"one gets another name": {
			func(desk, _ records.Record) error {
				return l.update(t, records.ServicePoint, setField(desk, "name", uuid.NewString()))
			},
			"map[Hold:[desk shelf] Page:[desk] Recall:[shelf] Wish:none]",
		},
		"one is deleted that a location names": {func(desk, _ records.Record) error {
			l.create(t, records.Location, setField(l.newLocation(t, uuid.NewString()), "primaryServicePoint", desk.ID()))
			if err := l.store.Delete(l.in(t), records.ServicePoint, desk.ID()); !fault.Is(err, fault.Invalid) {
				return fmt.Errorf("got %w, want %s", err, fault.Invalid)
			}
			return nil
		}, "map[Hold:[desk shelf] Page:[desk] Recall:[shelf] Wish:none]"},
	} {
		t.Run(name, func(t *testing.T) {
			desk, shelf := l.pickupLocation(t), l.pickupLocation(t)
			names := map[string]string{desk.ID(): "desk", shelf.ID(): "shelf"}
			policy := l.create(t, records.RequestPolicy, all(object{"allowedServicePoints": object{
				"Hold": []string{strings.ToUpper(desk.ID()), shelf.ID()}, "Page": []string{desk.ID()},
				"Recall": []string{shelf.ID()}, "Wish": "none",
			}}))
			other := l.create(t, records.RequestPolicy, all(object{"allowedServicePoints": object{}}))
			if err := tt.change(desk, shelf); err != nil {
				t.Fatal(err)
			}
			if got := l.allowed(t, policy.ID(), names); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if stored := l.get(t, records.RequestPolicy, other.ID()); !reflect.DeepEqual(stored, other) {
				t.Errorf("got %v, want %v", stored, other)
			}
		})
	}
}

// A policy that is written while one of its service points goes never keeps it.
func TestRequestPolicy_WrittenWhileAServicePointGoes(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	for n := range 10 {
		desk := l.pickupLocation(t)
		policy := l.create(t, records.RequestPolicy, object{
			"name": uuid.NewString(), "allowedServicePoints": object{"Hold": []string{desk.ID()}},
		})
		var both sync.WaitGroup
		var gone, written error
		both.Go(func() {
			if n%2 == 0 {
				gone = l.store.Delete(l.in(t), records.ServicePoint, desk.ID())
			} else {
				gone = l.update(t, records.ServicePoint, setField(desk, "pickupLocation", false))
			}
		})
		both.Go(func() { written = l.update(t, records.RequestPolicy, policy) })
		both.Wait()
		if gone != nil || written != nil && !fault.Is(written, fault.Invalid) {
			t.Errorf("got %v and %v, want at most the policy refused", gone, written)
		}
		if got := l.allowed(t, policy.ID(), nil); got != "map[Hold:[]]" {
			t.Errorf("the policy allows %s", got)
		}
	}
}

// A service point that goes changes its policies, so a write of a policy locks service points first.
func TestRequestPolicy_LocksServicePointsFirst(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	point := l.pickupLocation(t)
	policy := l.create(t, records.RequestPolicy, object{
		"name": "p", "allowedServicePoints": object{"Hold": []string{point.ID()}},
	})
	d := harness{t: t, id: l.id, db: l.db}
	going := d.begin(`SELECT FROM {schema}.service_point WHERE id = $1 FOR UPDATE`, point.ID())
	written := make(chan error, 1)
	go func() { written <- l.update(t, records.RequestPolicy, policy) }()
	d.waitUntilBlocked(1)
	if _, err := going.Exec(l.in(t), d.sql(`SELECT FROM {schema}.request_policy WHERE id = $1 FOR UPDATE NOWAIT`),
		policy.ID()); err != nil {
		t.Error(err)
	}
	if err := going.Rollback(l.in(t)); err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}
