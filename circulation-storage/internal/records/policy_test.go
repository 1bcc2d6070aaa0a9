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
		{name: "none", schedules: ``, want: ""},
		{name: "an empty one", schedules: `{"from":"2026-01-01","to":"2026-01-01","due":"2026-01-01"}`, want: ""},
		{name: "a term", schedules: `{"from":"2026-01-01","to":"2026-06-30","due":"2026-07-15"}`, want: ""},
		{
			name: "next to each other, unordered",
			schedules: `{"from":"2026-06-30","to":"2026-12-31","due":"2027-01-01"},{"from":"2026-01-01","to":"2026-06-30",` +
				`"due":"2026-06-30"}`, want: "",
		},
		{
			name: "ends before it begins", schedules: `{"from":"2026-03-01","to":"2026-02-01","due":"2026-07-15"}`,
			want: no + "from date after to date | schedules[0].from=2026-03-01T00:00:00.000+00:00",
		},
		{
			name: "due before it begins, and due before it ends",
			schedules: `{"from":"2026-03-01","to":"2026-02-01","due":"2026-02-15"},{"from":"2026-03-01","to":"2026-05-01",` +
				`"due":"2026-04-01T00:00:00+02:00"}`,
			want: no + "from date after due date | schedules[0].from=2026-03-01T00:00:00.000+00:00\n" +
				no + "to date after due date | schedules[1].to=2026-05-01T00:00:00.000+00:00",
		},
		{
			name:      "due earlier only by the offset",
			schedules: `{"from":"2026-03-01","to":"2026-04-01T00:00:00Z","due":"2026-04-01T00:00:00+02:00"}`,
			want:      no + "to date after due date | schedules[0].to=2026-04-01T00:00:00.000+00:00",
		},
		{
			name: "two due dates for one day",
			schedules: `{"from":"2026-05-01","to":"2026-06-01","due":"2026-06-01"},{"from":"2026-01-01","to":"2026-05-02",` +
				`"due":"2026-05-02"}`,
			want: no + "from date before the to date of schedules[1] | schedules[0].from=2026-05-01T00:00:00.000+00:00",
		},
		{
			name: "one within another, a third between",
			schedules: `{"from":"2026-01-01","to":"2026-12-31","due":"2026-12-31"},{"from":"2027-01-01","to":"2027-02-01",` +
				`"due":"2027-02-01"},` +
				`{"from":"2026-05-01","to":"2026-06-01","due":"2026-06-01"}`,
			want: no + "from date before the to date of schedules[0] | schedules[2].from=2026-05-01T00:00:00.000+00:00",
		},
	}
	for _, tc := range tests {
		_, err := complete(t, records.FixedDueDateSchedule, shelf{}, `{"name":"n","schedules":[`+tc.schedules+`]}`, "")
		if got := refused(t, err); got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.name, got, tc.want)
		}
	}
}

func TestRequestPolicy_AllowsPickupLocationsOnly(t *testing.T) {
	t.Parallel()
	points := shelf{
		"service_point/" + idA: {"pickupLocation": true}, "service_point/" +
			idB: {"pickupLocation": false}, "service_point/" + idC: {},
	}
	const no = "One or more Pickup locations are no longer available | allowedServicePoints="
	tests := []struct{ name, allowed, want string }{
		{name: "none", allowed: `{}`, want: ""},
		{name: "no list", allowed: `{"Hold":[]}`, want: ""},
		{
			name:    "a pickup location, twice",
			allowed: `{"Hold":["idA"],"Page":["idA"],"Recall":["` + strings.ToUpper(idA) + `"]}`, want: "",
		},
		{name: "no pickup location", allowed: `{"Hold":["idA"],"Recall":["idA","idB"]}`, want: no + idB},
		{name: "one that does not say", allowed: `{"Page":["idC"]}`, want: no + idC},
		{name: "a missing one", allowed: `{"Hold":["idD"]}`, want: no + idD},
		{name: "a list that does not count", allowed: `{"Wish":["idD"]}`, want: ""},
	}
	for _, tc := range tests {
		_, err := complete(t, records.RequestPolicy, points, `{"name":"n","allowedServicePoints":`+tc.allowed+`}`, "")
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
		noHolds   = "Alternate Renewal Loan Period for Holds is not allowed for policies with Fixed profile | " +
			"alternateRenewalLoanPeriod" + shown
	)
	tests := []struct{ name, policy, want string }{
		{name: "fixed", policy: renewable + fixed + `}`},
		{name: "fixed with another schedule for renewals", policy: renewable + fixed + `,` + other + `}}`},
		{
			name: "fixed with a period for renewals", policy: renewable + fixed + `,` + other + `,"period":` + period + `}}`,
			want: noPeriod,
		},
		{
			name:   "fixed with a period that does not count",
			policy: renewable + fixed + `,"renewalsPolicy":{"differentPeriod":false,"period":` + period + `}}`,
		},
		{name: "fixed with a period for held items", policy: renewable + fixed + `,` + holds + `}`, want: noHolds},
		{
			name:   "fixed with a period for held items that are not renewed",
			policy: renewable + fixed + `,` + strings.Replace(holds, "true", "false", 1) + `}`,
		},
		{
			name:   "fixed without renewals, with a period for held items",
			policy: `{"name":"n","loanable":true,"renewable":false,` + fixed + `,` + holds + `}`,
		},
		{
			name: "fixed with held items", policy: renewable + fixed + `,` + strings.Replace(holds, period, "null", 1) + `}`,
		},
		{
			name: "fixed with both", policy: renewable + fixed + `,` + holds + `,` + other + `,"period":` + period + `}}`,
			want: noHolds + "\n" + noPeriod,
		},
		{
			name:   "rolling with both",
			policy: renewable + `"loansPolicy":{"profileId":"Rolling"},` + holds + `,` + other + `,"period":` + period + `}}`,
		},
		{
			name: "fixed without a schedule", policy: renewable + `"loansPolicy":{"profileId":"Fixed"}}`,
			want: "Fixed due date cannot be null if loanable is true and profile is of type fixed " +
				"| fixedDueDateScheduleId=null",
		},
		{name: "not for loan", policy: `{"name":"n","loanable":false,"renewable":false}`},
		{
			name: "not for loan with terms",
			policy: `{"name":"n","loanable":false,"renewable":false,"loansPolicy":{"profileId":"Rolling","period":` + period +
				`}}`,
			want: "Fixed due date cannot be null if loanable is false and profile is of type fixed " +
				"| fixedDueDateScheduleId=null",
		},
		{
			name: "fixed with other dates and no schedule for them", policy: renewable + fixed +
				`,"renewalsPolicy":{"differentPeriod":true}}`,
			want: "Alternate fixed due date cannot be null if renewable is true, different period is true and profile is Fixed" +
				" | alternateFixedDueDateScheduleId=null",
		},
		{
			name: "a schedule for renewals that does not count", policy: `{"name":"n","loanable":true,"renewable":false,` +
				other + `}}`,
			want: "Alternate fixed due date cannot be " + idB +
				" if renewable is false, different period is true and profile is null" +
				" | alternateFixedDueDateScheduleId=" + idB,
		},
	}
	for _, tc := range tests {
		_, err := complete(t, records.LoanPolicy, shelf{}, tc.policy, "")
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
		{name: "item", level: "Item", more: `,"itemId":"idC","holdingsRecordId":"idD"`, want: ""},
		{name: "item without item", level: "Item", more: `,"holdingsRecordId":"idD"`, want: item},
		{name: "item without holdings", level: "Item", more: `,"itemId":"idC"`, want: holdings},
		{name: "item without both", level: "Item", more: ``, want: item + "\n" + holdings},
		{name: "title", level: "Title", more: ``, want: ""},
		{name: "title with an item", level: "Title", more: `,"itemId":"idC","holdingsRecordId":"idD"`, want: ""},
		{name: "title with holdings alone", level: "Title", more: `,"holdingsRecordId":"idD"`, want: title},
		{name: "title with an item alone", level: "Title", more: `,"itemId":"idC"`, want: title},
	}
	for _, tc := range tests {
		_, err := complete(t, records.Request, shelf{}, `{"instanceId":"idA","requesterId":"idB","requestType":"Page",
			"requestLevel":"`+tc.level+`",
			"requestDate":"2026-08-22T10:11:12Z","fulfillmentPreference":"Delivery","status":"Open - Not yet filled"`+tc.more+
			`}`, "")
		if got := refused(t, err); got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.name, got, tc.want)
		}
	}
}
