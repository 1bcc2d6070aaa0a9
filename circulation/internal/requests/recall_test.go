package requests_test

import (
	"strings"
	"testing"

	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// withRecalls is a loan policy with terms of recalls.
func withRecalls(terms string) string {
	return `{"id":"` + librarytest.ThreeID + `","name":"Three","loanable":true,"requestManagement":{"recalls":{` + terms +
		`}}}`
}

// The book is lent from 20 February to 20 March. Today is 1 March, 10 o'clock.
func TestCreate_RecallChangesTheDueDate(t *testing.T) {
	t.Parallel()
	const judged = "2026-03-20T10:00:00.123456Z"
	fiveDays := withRecalls(`"recallReturnInterval":{"duration":5,"intervalId":"Days"}`)
	recall := map[string]any{"requestType": "Recall"}
	for _, tt := range []struct {
		name   string
		change func(*fakeLibrary)
		kind   string
		due    string // "" is no recall of a loan
	}{
		{name: "at once", due: "2026-03-01T10:00:00.000Z"},
		{name: "by the policy", change: func(l *fakeLibrary) { l.Policy = fiveDays }, due: "2026-03-06T10:00:00.000Z"},
		{
			name: "after the borrower's card", change: func(l *fakeLibrary) { l.Policy, l.borrowerExpires = fiveDays, day(4) },
			due: "2026-03-04T10:00:00.000Z",
		},
		{
			name: "in the guaranteed period", due: "2026-03-02T10:00:00.000Z",
			change: func(l *fakeLibrary) {
				l.Policy = withRecalls(`"minimumGuaranteedLoanPeriod":{"duration":10,"intervalId":"Days"}`)
			},
		},
		{
			name: "after the schedule's date", due: "2026-03-01T00:00:00.000Z",
			change: func(l *fakeLibrary) {
				l.Policy = strings.Replace(withRecalls(`"minimumGuaranteedLoanPeriod":{"duration":10,"intervalId":"Days"}`),
					"{", `{"loansPolicy":{"profileId":"Rolling","fixedDueDateScheduleId":"s"},`, 1)
				l.Schedule = `{"id":"s","schedules":[{"from":"2026-02-15","to":"2026-03-31","due":"2026-03-01"}]}`
			},
		},
		{
			name:   "due before",
			change: func(l *fakeLibrary) { l.Policy = strings.Replace(fiveDays, ":5", ":50", 1) }, due: judged,
		},
		{
			name:   "recalled before",
			change: func(l *fakeLibrary) { l.loan = strings.Replace(l.loan, "{", `{"dueDateChangedByRecall":true,`, 1) },
			due:    judged,
		},
		{name: "not on loan", change: func(l *fakeLibrary) { l.loan, l.Book.Status.Name = "", "On order" }},
		{name: "hold", kind: "Hold"},
	} {
		l := newLibrary()
		if tt.change != nil {
			tt.change(l)
		}
		change := recall
		if tt.kind != "" {
			change = map[string]any{"requestType": tt.kind}
		}
		if _, err := l.create(t, change); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got := l.placed[0].Recall
		if tt.due == "" && got != nil || tt.due != "" &&
			(got == nil || *got != schemas.LoanRecall{LoanID: loanID, JudgedDueDate: judged, DueDate: tt.due}) {
			t.Errorf("%s: got %+v, want the loan due %q", tt.name, got, tt.due)
		}
	}
}

func TestCreate_RecallWithoutADueDate(t *testing.T) {
	t.Parallel()
	recall := map[string]any{"requestType": "Recall"}
	l := newLibrary()
	l.Policy = withRecalls(`"recallReturnInterval":{"duration":0,"intervalId":"Days"}`)
	_, err := l.create(t, recall)
	if details := readDetails(err); len(details) != 1 ||
		!strings.Contains(details[0].Message, `the duration "0" in "recallReturnInterval"`) ||
		details[0].Parameters[0].Key != "loanPolicyName" {
		t.Errorf("an invalid period: got %v", err)
	}
	l.NoPolicy = true
	if _, err := l.create(t, recall); !fault.Is(err, fault.Internal) ||
		!strings.Contains(err.Error(), "Loan policy "+librarytest.ThreeID) {
		t.Errorf("no policy: got %v", err)
	}
	l.loan = strings.Replace(l.loan, benID, otherID, 1)
	if _, err := l.create(t, recall); !fault.Is(err, fault.Internal) {
		t.Errorf("no borrower: got %v", err)
	}
	if len(l.placed) != 0 {
		t.Error("something was written")
	}
}

// Another person recalls the book or renews it while the request is judged.
func TestCreate_JudgesAChangedLoanOnce(t *testing.T) {
	t.Parallel()
	for refusals, wanted := range map[int]fault.Code{1: "", 2: fault.LoanChanged} {
		l := newLibrary()
		for range refusals {
			l.answers = append(l.answers, fault.New(fault.LoanChanged, "changed"))
		}
		if _, err := l.create(t, map[string]any{"requestType": "Recall"}); fault.CodeOf(err) != wanted || len(l.placed) != 2 {
			t.Errorf("changed %d times: got %v after %d tries, want %q after 2", refusals, err, len(l.placed), wanted)
		}
	}
}
