package integration_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

func TestAnonymization_BySetting(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 9)
	const path = "/circulation/scheduled-anonymize-processing"
	_, patron := p.addPatron(t)
	var loans []record
	for i, barcode := range p.addBooks(t, 3) {
		loans = append(loans, p.lendAs(t, barcode, patron, nil))
		if i > 0 {
			readObject(t, p.checkInItem(t, barcode, p.ServicePointID), http.StatusOK)
		}
	}
	oldest := fmt.Sprintf("/loan-storage/loans/%v", loans[1]["id"])
	returned := time.Now().AddDate(0, -1, -4).UTC().Format(time.RFC3339)
	if _, err := p.Storage.Must(t.Context(), http.MethodPut, oldest,
		setFields(p.readRecord(t, oldest), record{"systemReturnDate": returned})); err != nil {
		t.Fatal(err)
	}
	setting := func(closing string, period record) {
		p.addRecord(t, "/circulation-settings-storage/circulation-settings", record{"name": "loan_history", "value": record{
			"closingType": record{"loan": closing, "feeFine": nil}, "loan": period, "feeFine": record{}, "treatEnabled": false,
		}})
	}
	run := func(want ...any) {
		t.Helper()
		got := readObject(t, p.callTimer(t, path), http.StatusOK)
		if fmt.Sprint(got["anonymizedLoans"]) != fmt.Sprintf("%v", want) || fmt.Sprint(got["errors"]) != "[]" {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	run()
	setting("never", record{})
	run()
	setting("interval", record{"duration": 1, "intervalId": "Months"})
	run(loans[1]["id"])
	run()
	setting("interval", record{"duration": 1, "intervalId": "Centuries"})
	a := p.callTimer(t, path)
	if a.Status != http.StatusUnprocessableEntity {
		t.Errorf("got %d %s for a setting without a period", a.Status, a.Body)
	}
	setting("immediately", record{})
	run(loans[2]["id"])
	for i, loan := range loans {
		stored := p.readLoan(t, loan)
		if named := stored["userId"] != nil; named != (i == 0) {
			t.Errorf("loan %d of 3 has the patron %v", i+1, stored["userId"])
		}
	}
}
