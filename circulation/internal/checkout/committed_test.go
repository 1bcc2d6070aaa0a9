package checkout_test

import (
	"errors"
	"testing"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas/fault"
)

func TestACommittedCheckOutIsAnsweredAgainAsItWas(t *testing.T) {
	t.Parallel()
	w := newWorld()
	req := checkout.Request{ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID, LoanID: "0bab56e5-1ab6-4ac2-afdf-8b2df0434378", ClaimID: librarytest.DeskID}
	if _, done, err := w.service().Committed(t.Context(), req); done || err != nil {
		t.Fatalf("before: got %t, %v, want none", done, err)
	}
	first, err := w.service().CheckOut(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.commits[0].ClaimID; got != req.ClaimID {
		t.Errorf("the commit shows the claim %q, want %q", got, req.ClaimID)
	}
	w.Book.Status.Name, w.onLoan = "Checked out", true
	again, done, err := w.service().Committed(t.Context(), req)
	if !done || err != nil {
		t.Fatalf("got %t, %v, want the loan", done, err)
	}
	if string(again.Loan) != string(first.Loan) || again.User.ID != first.User.ID || again.Group != first.Group || again.Policy.Name != first.Policy.Name ||
		again.Copy.Instance.Title != first.Copy.Instance.Title || again.Copy.Item.Status.Name != "Checked out" {
		t.Errorf("got %+v, want %+v", again, first)
	}
	for name, err := range map[string]error{
		"storage is away":                 fault.New(fault.Unavailable, "down"),
		"the standby does not confirm it": fault.New(fault.Timeout, "storage did not answer in time"),
		"storage is broken":               fault.New(fault.Internal, "broken"),
	} {
		w.loanErr = err
		_, done, err := w.service().Committed(t.Context(), req)
		var f *fault.Error
		if done || !errors.As(err, &f) || f.Code != fault.OutcomeUnknown || *f.Details[0].Parameters[0].Value != req.LoanID {
			t.Errorf("%s: got %t, %v, want %s with the loan's id", name, done, err, fault.OutcomeUnknown)
		}
	}
}

func TestACheckOutWhoseClaimIsLostIsNotSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.commit = []error{fault.New(fault.ClaimLost, "lost")}
	if _, err := w.checkOut(t); !fault.Is(err, fault.ClaimLost) || len(w.commits) != 1 {
		t.Errorf("got %v after %d commits, want %s after one", err, len(w.commits), fault.ClaimLost)
	}
	if len(w.released) != 1 || w.endings[0].Outcome != checkout.OutcomeTakenOver {
		t.Errorf("released %v, outcome %v", w.released, w.endings[0].Outcome)
	}
}
