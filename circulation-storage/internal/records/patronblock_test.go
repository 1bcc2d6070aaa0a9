package records_test

import (
	"testing"

	"checkoutlock/circulation-storage/internal/records"
)

func TestPatronBlockCondition_HasAMessageWithABlockOnly(t *testing.T) {
	t.Parallel()
	const (
		noMessage = "Message to be displayed is a required field if one or more blocked actions selected | patron block " +
			"condition id=" + idA
		noAction = "One or more blocked actions must be selected for message to be displayed to be used | patron block " +
			"condition id=" + idA
	)
	for name, tt := range map[string]struct{ more, want string }{
		"neither":                   {},
		"an empty message":          {more: `,"message":" ","blockBorrowing":false`},
		"a block with a message":    {more: `,"message":"Too many","blockRenewals":true`},
		"a block without a message": {more: `,"blockBorrowing":true`, want: noMessage},
		"a block with blanks":       {more: `,"blockRequests":true,"message":" \n"`, want: noMessage},
		"a message without a block": {more: `,"message":"Too many"`, want: noAction},
		"a message, blocks all false": {
			more: `,"message":"Too many","blockBorrowing":false,"blockRenewals":null`, want: noAction,
		},
	} {
		got, err := complete(t, records.PatronBlockCondition, shelf{}, `{"id":"idA","name":"n"`+tt.more+`}`, "")
		if refused := refused(t, err); refused != tt.want {
			t.Errorf("%s: got %q, want %q", name, refused, tt.want)
		}
		for _, action := range []string{"blockBorrowing", "blockRenewals", "blockRequests"} {
			if _, set := got[action].(bool); !set {
				t.Errorf("%s: %s is %v, want true or false", name, action, got[action])
			}
		}
	}
}

func TestPatronBlockLimit_HasAValueInRange(t *testing.T) {
	t.Parallel()
	const (
		integer = "Must be blank or an integer from 0 to 999999 | value="
		number  = "Must be blank or a number from 0.00 to 999999.99 | value="
		fees    = "CF7A0D5F-A327-4CA1-AA9E-DC55EC006B8A"
	)
	for _, tt := range []struct{ condition, value, want string }{
		{condition: records.ItemsChargedOut, value: "null"},
		{condition: records.ItemsChargedOut, value: "0"},
		{condition: records.ItemsChargedOut, value: "999999.0"},
		{condition: records.ItemsChargedOut, value: "1000000", want: integer + "1000000"},
		{condition: records.ItemsChargedOut, value: "-1", want: integer + "-1"},
		{condition: records.OverdueItems, value: "1.5", want: integer + "1.5"},
		{condition: records.LostItems, value: "1e20", want: integer + "1e20"},
		{condition: fees, value: "0.01"},
		{condition: fees, value: "999999.99"},
		{condition: fees, value: "1000000", want: number + "1000000"},
		{condition: fees, value: "-0.01", want: number + "-0.01"},
	} {
		_, err := complete(t, records.PatronBlockLimit, shelf{}, `{"patronGroupId":"idA","conditionId":"`+tt.condition+
			`","value":`+tt.value+`}`, "")
		if got := refused(t, err); got != tt.want {
			t.Errorf("%s for %s: got %q, want %q", tt.value, tt.condition, got, tt.want)
		}
	}
}
