package history_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/history"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

func TestCheck_NamesEachFaultWithItsPlace(t *testing.T) {
	t.Parallel()
	minusOne := -1
	good := schemas.PastCheckOut{ID: uuid.NewString(), Outcome: "lent"}
	bad := schemas.PastCheckOut{
		ID: "1", Outcome: "Lent", AgoMs: -1, TookMs: -1, WaitMs: &minusOne, Repeats: -1, UserID: "1", LoanID: "1",
		ServicePointID: "1",
		Code:           strings.Repeat("é", 256), UserBarcode: strings.Repeat("é", 256),
		ItemBarcode: strings.Repeat("é", 256),
		RequestID:   strings.Repeat("é", 256), Reason: strings.Repeat("é", 1001),
	}
	if err := history.Report.Check(&schemas.CheckOutReport{CheckOuts: []schemas.PastCheckOut{good, good}}); err != nil {
		t.Errorf("a good report: %v", err)
	}
	err := history.Report.Check(&schemas.CheckOutReport{CheckOuts: []schemas.PastCheckOut{good, bad}, Waiting: -1})
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.Invalid {
		t.Fatalf("got %v, want %s", err, fault.Invalid)
	}
	var keys []string
	for _, d := range f.Details {
		keys = append(keys, strings.TrimPrefix(d.Parameters[0].Key, "checkOuts[1]."))
		if value := *d.Parameters[0].Value; len(value) > 300 || !strings.HasPrefix(d.Message, d.Parameters[0].Key+" must ") {
			t.Errorf("%s: %q, value of %d bytes", d.Parameters[0].Key, d.Message, len(value))
		}
	}
	const want = "waiting id agoMs outcome code reason userBarcode itemBarcode userId loanId servicePointId waitMs " +
		"tookMs repeats requestId"
	if got := strings.Join(keys, " "); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestCheck_AnswersInBounds(t *testing.T) {
	t.Parallel()
	var f *fault.Error
	err := history.Report.Check(&schemas.CheckOutReport{CheckOuts: make([]schemas.PastCheckOut, schemas.MaxHistoryBatch)})
	if !errors.As(err, &f) || len(f.Details) != 100 {
		t.Errorf("500 entries without anything: got %.200v, want 100 details", err)
	}
	err = history.Report.Check(&schemas.CheckOutReport{CheckOuts: make([]schemas.PastCheckOut, schemas.MaxHistoryBatch+1)})
	if !errors.As(err, &f) || len(f.Details) != 1 {
		t.Errorf("501 entries: got %.200v, want the number alone", err)
	}
}
