package jsonschema_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"checkoutlock/schemas"
	"checkoutlock/schemas/jsonschema"
)

var lockRequest = jsonschema.For[schemas.CheckoutLockRequest]("checkout-lock-request")

func TestTyped_NamesEachViolation(t *testing.T) {
	t.Parallel()
	answers := jsonschema.For[schemas.KeyLeaseChange]("key-lease-change")
	reports := jsonschema.For[schemas.CheckOutReport]("check-out-report")
	tooLong, nothing := 600_001, schemas.PastCheckOut{}
	tests := []struct {
		name string
		err  error
		want []string
	}{
		{name: "right", err: lockRequest.Check(&schemas.CheckoutLockRequest{UserID: someID}), want: nil},
		{
			name: "a number out of range", err: lockRequest.Check(&schemas.CheckoutLockRequest{
				UserID: someID, TTLMs: &tooLong, WaitMs: -1,
			}),
			want: []string{"ttlMs=600001: ttlMs must be from 0 to 600000", "waitMs=-1: waitMs must be from 0 to 10000"},
		},
		{
			name: "FOLIO's message for an id", err: lockRequest.Check(&schemas.CheckoutLockRequest{}),
			want: []string{fmt.Sprintf("userId=: must match %q", schemas.FolioUUID)},
		},
		{
			name: "a part", err: answers.Check(&schemas.KeyLeaseChange{Answer: &schemas.CheckOutAnswer{Status: 500}}),
			want: []string{"answer.status=500: answer.status must be from 200 to 499", "answer.body=: answer.body is required"},
		},
		{
			name: "an element", err: reports.Check(&schemas.CheckOutReport{CheckOuts: []schemas.PastCheckOut{nothing}}),
			want: []string{
				"checkOuts[0].id=: checkOuts[0].id must be a UUID and not the nil one",
				"checkOuts[0].outcome=: checkOuts[0].outcome must match ^[a-z_]{1,40}$",
			},
		},
		{
			name: "a missing list", err: reports.Check(&schemas.CheckOutReport{}),
			want: []string{"checkOuts=: checkOuts is required"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, d := range detailsOf(tt.err) {
				got = append(got, d.Parameters[0].Key+"="+*d.Parameters[0].Value+": "+d.Message)
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) || (tt.err == nil) != (tt.want == nil) {
				t.Errorf("got %q (%v), want %q", got, tt.err, tt.want)
			}
		})
	}
}

func TestTyped_RefusesASchemaThatDoesNotFitTheType(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"no such schema":      jsonschema.For[schemas.ForcedRelease]("no-such").Check(&schemas.ForcedRelease{}),
		"a property too many": jsonschema.For[schemas.ForcedRelease]("lock-environment").Check(&schemas.ForcedRelease{}),
		"an unknown keyword":  jsonschema.For[struct{ Name int }]("item").Check(&struct{ Name int }{}),
	} {
		if err == nil || detailsOf(err) != nil {
			t.Errorf("%s: got %v, want an error of the program", name, err)
		}
	}
}

func TestTyped_AllocatesNothingForARightValue(t *testing.T) { //nolint:paralleltest // it counts allocations
	ttl := 3000
	v := &schemas.CheckoutLockRequest{UserID: someID, AcquisitionID: someID, TTLMs: &ttl, WaitMs: 5}
	if n := testing.AllocsPerRun(100, func() { _ = lockRequest.Check(v) }); n != 0 {
		t.Errorf("a check allocates %v times", n)
	}
}

// The services' constants serve senders; what is refused stands in the schemas.
func TestTyped_HasTheBoundsOfTheConstants(t *testing.T) {
	t.Parallel()
	type schema struct {
		Least int `json:"minimum"`
		Most  int `json:"maximum"`
		Long  int `json:"maxLength"`
		Many  int `json:"maxItems"`
	}
	read := func(file, part, property string) (s schema) {
		raw, err := os.ReadFile("json/" + file + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]json.RawMessage
		var parts map[string]schema
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(doc[part], &parts); err != nil {
			var mixed map[string]json.RawMessage
			if json.Unmarshal(doc[part], &mixed) != nil || json.Unmarshal(mixed[property], &s) != nil {
				t.Fatal(err)
			}
			return s
		}
		return parts[property]
	}
	tests := []struct {
		name      string
		got, want int
	}{
		{name: "ttlMs", got: read("checkout-lock-request", "properties", "ttlMs").Most, want: schemas.MaxLockTTLMs},
		{name: "waitMs", got: read("checkout-lock-request", "properties", "waitMs").Most, want: schemas.MaxLockWaitMs},
		{name: "key", got: read("key-lease", "properties", "key").Long, want: schemas.MaxIdempotencyKey},
		{name: "leaseMs, least", got: read("key-lease", "properties", "leaseMs").Least, want: schemas.MinKeyLeaseMs},
		{name: "leaseMs, most", got: read("key-lease", "properties", "leaseMs").Most, want: schemas.MaxKeyLeaseMs},
		{
			name: "leaseMs of a change", got: read("key-lease-change", "properties", "leaseMs").Most,
			want: schemas.MaxKeyLeaseMs,
		},
		{name: "waitMs of a key lease", got: read("key-lease", "properties", "waitMs").Most, want: schemas.MaxKeyLeaseWaitMs},
		{name: "checkOuts", got: read("check-out-report", "properties", "checkOuts").Many, want: schemas.MaxHistoryBatch},
		{name: "reason", got: read("past-check-out", "properties", "reason").Long, want: schemas.MaxHistoryReason},
		{name: "an hour", got: read("definitions", "$defs", "hourMs").Most, want: schemas.MaxHistoryMs},
		{name: "a short text", got: read("definitions", "$defs", "shortText").Long, want: schemas.MaxHistoryText},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s: the schema says %d, the constant %d", tt.name, tt.got, tt.want)
		}
	}
}
