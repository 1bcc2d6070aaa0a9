package records_test

import (
	"errors"
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

// refused returns the messages and parameters of an Invalid fault, one line each.
func refused(t *testing.T, err error) string {
	t.Helper()
	var f *fault.Error
	if err != nil && (!errors.As(err, &f) || f.Code != fault.Invalid) {
		t.Fatalf("got %v, want an Invalid fault", err)
	}
	if f == nil {
		return ""
	}
	lines := make([]string, len(f.Details))
	for i, d := range f.Details {
		lines[i] = d.Message
		for _, p := range d.Parameters {
			lines[i] += " | " + p.Key
			if p.Value != nil {
				lines[i] += "=" + *p.Value
			}
		}
	}
	return strings.Join(lines, "\n")
}

func TestFixedDueDateSchedule_RefusesContradictingDates(t *testing.T) {
	t.Parallel()
	const no = "Unable to save fixed loan date. Date range not valid "
	tests := []struct{ name, schedules, want string }{
		{"none", ``, ""},
		{"an empty one", `{"from":"2026-01-01","to":"2026-01-01","due":"2026-01-01"}`, ""},
		{"a term", `{"from":"2026-01-01","to":"2026-06-30","due":"2026-07-15"}`, ""},
		{
			"next to each other, unordered",
			`{"from":"2026-06-30","to":"2026-12-31","due":"2027-01-01"},{"from":"2026-01-01","to":"2026-06-30","due":"2026-06-30"}`, "",
		},
		{
			"ends before it begins", `{"from":"2026-03-01","to":"2026-02-01","due":"2026-07-15"}`,
			no + "from date after to date | schedules[0].from=2026-03-01T00:00:00.000+00:00",
		},
		{
			"due before it begins, and due before it ends",
			`{"from":"2026-03-01","to":"2026-02-01","due":"2026-02-15"},{"from":"2026-03-01","to":"2026-05-01","due":"2026-04-01T00:00:00+02:00"}`,
			no + "from date after due date | schedules[0].from=2026-03-01T00:00:00.000+00:00\n" +
				no + "to date after due date | schedules[1].to=2026-05-01T00:00:00.000+00:00",
		},
		{
			"due earlier only by the offset", `{"from":"2026-03-01","to":"2026-04-01T00:00:00Z","due":"2026-04-01T00:00:00+02:00"}`,
			no + "to date after due date | schedules[0].to=2026-04-01T00:00:00.000+00:00",
		},
		{
			"two due dates for one day",
			`{"from":"2026-05-01","to":"2026-06-01","due":"2026-06-01"},{"from":"2026-01-01","to":"2026-05-02","due":"2026-05-02"}`,
			no + "from date before the to date of schedules[1] | schedules[0].from=2026-05-01T00:00:00.000+00:00",
		},
		{
			"one within another, a third between",
			`{"from":"2026-01-01","to":"2026-12-31","due":"2026-12-31"},{"from":"2027-01-01","to":"2027-02-01","due":"2027-02-01"},` +
				`{"from":"2026-05-01","to":"2026-06-01","due":"2026-06-01"}`,
			no + "from date before the to date of schedules[0] | schedules[2].from=2026-05-01T00:00:00.000+00:00",
		},
	}
	for _, tc := range tests {
		_, err := complete(t, records.FixedDueDateSchedule(), shelf{}, `{"name":"n","schedules":[`+tc.schedules+`]}`, "")
		if got := refused(t, err); got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.name, got, tc.want)
		}
	}
}

func TestRequestPolicy_AllowsPickupLocationsOnly(t *testing.T) {
	t.Parallel()
	points := shelf{
		"service_point/" + idA: {"pickupLocation": true}, "service_point/" + idB: {"pickupLocation": false}, "service_point/" + idC: {},
	}
	const no = "One or more Pickup locations are no longer available | allowedServicePoints="
	tests := []struct{ name, allowed, want string }{
		{"none", `{}`, ""},
		{"no list", `{"Hold":[]}`, ""},
		{"a pickup location, twice", `{"Hold":["idA"],"Page":["idA"],"Recall":["` + strings.ToUpper(idA) + `"]}`, ""},
		{"no pickup location", `{"Hold":["idA"],"Recall":["idA","idB"]}`, no + idB},
		{"one that does not say", `{"Page":["idC"]}`, no + idC},
		{"a missing one", `{"Hold":["idD"]}`, no + idD},
		{"a list that does not count", `{"Wish":["idD"]}`, ""},
	}
	for _, tc := range tests {
		_, err := complete(t, records.RequestPolicy(), points, `{"name":"n","allowedServicePoints":`+tc.allowed+`}`, "")
		if got := refused(t, err); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Details[0].Code != "INVALID_ALLOWED_SERVICE_POINT" {
			t.Errorf("%s: got the code %q", tc.name, f.Details[0].Code)
		}
	}
}

func TestLoanPolicy_RefusesWhatFOLIORefuses(t *testing.T) {
	t.Parallel()
	const (
		period    = `{"duration":1,"intervalId":"Days"}`
		fixed     = `"loansPolicy":{"profileId":"Fixed","fixedDueDateScheduleId":"idA"}`
		renewable = `{"name":"n","loanable":true,"renewable":true,`
		other     = `"renewalsPolicy":{"differentPeriod":true,"alternateFixedDueDateScheduleId":"idB"`
		holds     = `"requestManagement":{"holds":{"renewItemsWithRequest":true,"alternateRenewalLoanPeriod":` + period + `}}`
		shown     = `={"duration":1,"intervalId":"Days"}`
		noPeriod  = "Period in RenewalsPolicy is not allowed for policies with Fixed profile | period" + shown
		noHolds   = "Alternate Renewal Loan Period for Holds is not allowed for policies with Fixed profile | alternateRenewalLoanPeriod" + shown
	)
	tests := []struct{ name, policy, want string }{
		{name: "fixed", policy: renewable + fixed + `}`},
		{name: "fixed with another schedule for renewals", policy: renewable + fixed + `,` + other + `}}`},
		{name: "fixed with a period for renewals", policy: renewable + fixed + `,` + other + `,"period":` + period + `}}`, want: noPeriod},
		{name: "fixed with a period that does not count", policy: renewable + fixed + `,"renewalsPolicy":{"differentPeriod":false,"period":` + period + `}}`},
		{name: "fixed with a period for held items", policy: renewable + fixed + `,` + holds + `}`, want: noHolds},
		{
			name: "fixed with both", policy: renewable + fixed + `,` + holds + `,` + other + `,"period":` + period + `}}`,
			want: noHolds + "\n" + noPeriod,
		},
		{name: "rolling with both", policy: renewable + `"loansPolicy":{"profileId":"Rolling"},` + holds + `,` + other + `,"period":` + period + `}}`},
		{
			name: "fixed without a schedule", policy: renewable + `"loansPolicy":{"profileId":"Fixed"}}`,
			want: "Fixed due date cannot be null if loanable is true and profile is of type fixed | fixedDueDateScheduleId=null",
		},
		{name: "not for loan", policy: `{"name":"n","loanable":false,"renewable":false}`},
		{
			name: "not for loan with terms", policy: `{"name":"n","loanable":false,"renewable":false,"loansPolicy":{"profileId":"Rolling","period":` + period + `}}`,
			want: "Fixed due date cannot be null if loanable is false and profile is of type fixed | fixedDueDateScheduleId=null",
		},
		{
			name: "fixed with other dates and no schedule for them", policy: renewable + fixed + `,"renewalsPolicy":{"differentPeriod":true}}`,
			want: "Alternate fixed due date cannot be null if renewable is true, different period is true and profile is Fixed" +
				" | alternateFixedDueDateScheduleId=null",
		},
		{
			name: "a schedule for renewals that does not count", policy: `{"name":"n","loanable":true,"renewable":false,` + other + `}}`,
			want: "Alternate fixed due date cannot be " + idB + " if renewable is false, different period is true and profile is null" +
				" | alternateFixedDueDateScheduleId=" + idB,
		},
	}
	for _, tc := range tests {
		_, err := complete(t, records.LoanPolicy(), shelf{}, tc.policy, "")
		if got := refused(t, err); got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.name, got, tc.want)
		}
	}
}

func TestRequest_NamesItsItemByItsLevel(t *testing.T) {
	t.Parallel()
	const (
		item     = "Item ID in item level request should not be absent | itemId"
		holdings = "Holdings record ID in item level request should not be absent | holdingsRecordId"
		title    = "Title level request must have both itemId and holdingsRecordId or neither | itemId"
	)
	tests := []struct{ name, level, more, want string }{
		{"item", "Item", `,"itemId":"idC","holdingsRecordId":"idD"`, ""},
		{"item without item", "Item", `,"holdingsRecordId":"idD"`, item},
		{"item without holdings", "Item", `,"itemId":"idC"`, holdings},
		{"item without both", "Item", ``, item + "\n" + holdings},
		{"title", "Title", ``, ""},
		{"title with an item", "Title", `,"itemId":"idC","holdingsRecordId":"idD"`, ""},
		{"title with holdings alone", "Title", `,"holdingsRecordId":"idD"`, title},
		{"title with an item alone", "Title", `,"itemId":"idC"`, title},
	}
	for _, tc := range tests {
		_, err := complete(t, records.Request(), shelf{}, `{"instanceId":"idA","requesterId":"idB","requestType":"Page","requestLevel":"`+tc.level+`",
			"requestDate":"2026-08-22T10:11:12Z","fulfillmentPreference":"Delivery","status":"Open - Not yet filled"`+tc.more+`}`, "")
		if got := refused(t, err); got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.name, got, tc.want)
		}
	}
}
