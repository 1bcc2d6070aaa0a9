package commit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas/fault"
)

// recalling makes a placement a recall of the loan loanID, judged to be due on 25 March.
func recalling(recall string) map[string]any {
	replace := map[string]any{"request.requestType": "Recall"}
	if recall != "" {
		replace["recall"] = rawJSON(fmt.Sprintf(recall, loanID))
	}
	return replace
}

type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

const shorter = `{"loanId":%q,"judgedDueDate":"2026-03-25T01:00:00+01:00","dueDate":"2026-03-10T00:00:00Z"}`

func TestPlacement_ChangesTheLoanOfItsItem(t *testing.T) {
	t.Parallel()
	const lent = `"action":"renewed","actionComment":"once","dueDate":"2026-03-25T00:00:00Z",` +
		`"reminders":{"lastFeeBilled":{"number":1}}`
	const recalled = `"action":"recallrequested","itemStatus":"Checked out","dueDateChangedByRecall":true`
	for _, tt := range []struct {
		name    string
		replace map[string]any
		loan    string // its properties; "" for none
		want    string // its properties after that; "" if it stays
		event   bool
		code    fault.Code
	}{
		{
			name: "recall", replace: recalling(shorter), loan: lent, want: recalled + `,"dueDate":"2026-03-10T00:00:00Z"`,
			event: true,
		},
		{
			name:    "recall that keeps the due date",
			replace: recalling(strings.Replace(shorter, "2026-03-10T00:00:00Z", "2026-03-25T00:00:00Z", 1)),
			loan:    lent, want: recalled + `,"dueDate":"2026-03-25T00:00:00Z"`, event: true,
		},
		{
			name: "recall of a loan without a due date", replace: recalling(`{"loanId":%q,"dueDate":"2026-03-10T00:00:00Z"}`),
			loan: `"action":"checkedout"`, want: recalled + `,"dueDate":"2026-03-10T00:00:00Z"`, event: true,
		},
		{name: "second recall", replace: recalling(shorter), loan: lent + `,"dueDateChangedByRecall":true`},
		{name: "recall by an earlier circulation", replace: recalling(""), loan: lent},
		{name: "recall of an item on order", replace: recalling("")},
		{
			name: "recall of a loan with another due date", replace: recalling(shorter),
			loan: `"dueDate":"2026-03-26T00:00:00Z"`, code: fault.LoanChanged,
		},
		{name: "recall of a loan that was returned", replace: recalling(shorter), code: fault.LoanChanged},
		{
			name: "recall of another loan", replace: recalling(strings.Replace(shorter, "%q", `"`+otherCopy+`","was":%q`, 1)),
			loan: lent, code: fault.LoanChanged,
		},
		{
			name: "hold", loan: lent,
			want: `"action":"holdrequested","itemStatus":"Checked out","dueDate":"2026-03-25T00:00:00Z",` +
				`"reminders":{"lastFeeBilled":{"number":1}}`,
		},
		{name: "hold of an item that is not on loan"},
		{name: "page", replace: map[string]any{"request.requestType": "Page"}, loan: lent},
	} {
		p, err := commit.ParsePlacement(placement(t, tt.replace))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		seen := commit.Seen{Instance: true, Item: storedItem(t, "Checked out"), Now: now}
		if tt.loan != "" {
			seen.Loan = decode(t, `{"id":%q,"itemId":%q,"userId":%q,"loanDate":"2026-03-01T00:00:00Z",`+
				`"status":{"name":"Open"},"vendorField":[1.5],%s}`, loanID, itemID, otherID, tt.loan)
		}
		got, err := p.Decide(ctx(t), seen)
		if fault.CodeOf(err) != tt.code {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.code)
			continue
		}
		if (got.Loan != nil) != (tt.want != "") || hasEvent(got, commit.LoanDueDateChanged) != tt.event {
			t.Errorf("%s: got the loan %v, event %q, want %s, an event: %t", tt.name, got.Loan, got.Events, tt.want,
				tt.event)
			continue
		}
		if got.Loan == nil {
			continue
		}
		delete(got.Loan, "metadata")
		wantJSON(t, tt.name, got.Loan, fmt.Sprintf(
			`{"id":%q,"itemId":%q,"userId":%q,"loanDate":"2026-03-01T00:00:00Z",`+
				`"status":{"name":"Open"},"vendorField":[1.5],%s}`,
			loanID, itemID, otherID, tt.want,
		))
	}
}

func TestParsePlacement_RefusesARecallOfNothing(t *testing.T) {
	t.Parallel()
	hold := recalling(shorter)
	hold["request.requestType"] = "Hold"
	for name, replace := range map[string]map[string]any{
		"hold": hold, "recall of any copy": forTitle(recalling(shorter)),
	} {
		if _, err := commit.ParsePlacement(placement(t, replace)); !fault.Is(err, fault.Invalid) ||
			!strings.Contains(err.Error(), "recall goes with") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A renewal after the recall was cancelled lets the next recall change the new due date.
func TestRenewal_ForgetsARecallThatIsGone(t *testing.T) {
	t.Parallel()
	for name, recalled := range map[string]bool{"cancelled": false, "open, allowed by staff": true} {
		r, err := commit.ParseRenewal(fmt.Appendf(nil, `{"loanId":%q,"itemId":%q,"itemVersion":3,
			"judgedDueDate":"2026-03-25T00:00:00Z","judgedRenewalCount":0,
			"dueDate":"2026-04-25T00:00:00Z","loanPolicyId":%q,"override":{"comment":"agreed",
			"recalled":true}}`, loanID, itemID, deskID))
		if err != nil {
			t.Fatal(err)
		}
		loan := decode(t, `{"id":%q,"itemId":%q,"userId":%q,"loanDate":"2026-03-01T00:00:00Z",`+
			`"dueDate":"2026-03-25T00:00:00Z","status":{"name":"Open"},"dueDateChangedByRecall":true}`, loanID, itemID, otherID)
		got, err := r.Decide(ctx(t), commit.Seen{
			Item: storedItem(t, "Checked out"), Loan: loan, Recalled: recalled, Now: now,
		})
		if err != nil || got.Loan["dueDateChangedByRecall"] != recalled {
			t.Errorf("%s: got %v, %v, want dueDateChangedByRecall %t", name, got.Loan, err, recalled)
		}
	}
}

func hasEvent(c commit.Change, kind string) bool {
	return slices.ContainsFunc(c.Events, func(e commit.Event) bool { return e.Type == kind })
}
