package integration_test

import (
	"net/http"
	"testing"

	"checkoutlock/integration-tests/stack"
)

// shelfmark is what rules see of an item: its material type and loan types, by
// name. The first two are the library's own if empty, the temporary one is none.
type shelfmark struct{ material, loanType, temporary string }

func (m shelfmark) temporaryType(loanTypes map[string]string) record {
	if m.temporary == "" {
		return nil
	}
	return record{"temporaryLoanTypeId": loanTypes[m.temporary]}
}

func TestScenarios_Limits(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock()}, 1)
	reading := p.addRecord(t, "/loan-types", record{"name": "Reading room"})
	loanTypes := map[string]string{"": p.LoanTypeID, "usual": p.LoanTypeID, "reading room": reading}
	free := p.addLoanPolicy(t, "Free", nil)
	materials := map[string]string{"": p.MaterialTypeID}
	for _, name := range []string{"nested", "deep", "termed", "temporary", "grouped"} {
		materials[name] = p.addMaterialType(t, name)
	}
	p.storeRules(t, p.formatRules(
		"m "+p.MaterialTypeID, p.PolicyID,
		"m "+materials["nested"], free,
		"    t "+reading, p.PolicyID,
		"m "+materials["deep"], free,
		"    g "+p.GroupID, free,
		"        t "+reading, p.PolicyID,
		"m "+materials["termed"], p.addTermPolicy(t),
		"m "+materials["temporary"]+" + t "+reading, p.PolicyID,
		"g "+p.GroupID, p.PolicyID,
	))
	const (
		material = "material type [ITEM_LIMIT_MATERIAL_TYPE]"
		both     = "combination of material type and loan type [ITEM_LIMIT_MATERIAL_TYPE_LOAN_TYPE]"
		all      = "combination of patron group, material type and loan type [ITEM_LIMIT_PATRON_GROUP_MATERIAL_TYPE_LOAN_TYPE]"
	)
	for _, tt := range []struct {
		name, folio  string
		first, then  shelfmark
		overLimitFor string // empty when the second is lent too
	}{
		{"a rule within a rule names both types", "limit by rules of several lines", shelfmark{"nested", "reading room", ""}, shelfmark{"nested", "reading room", ""}, both},
		{"its parent has no limit", "limit by rules of several lines", shelfmark{"nested", "reading room", ""}, shelfmark{"nested", "", ""}, ""},
		{"nor do loans of the parent's count for it", "limit by rules of several lines", shelfmark{"nested", "", ""}, shelfmark{"nested", "reading room", ""}, ""},
		{"a rule within two rules names all three", "limit by patron group, material type and loan type", shelfmark{"deep", "reading room", ""}, shelfmark{"deep", "reading room", ""}, all},
		{"a book of another loan type counts", "limit by material type, loan type not present", shelfmark{"", "reading room", ""}, shelfmark{"", "", ""}, material},
		{"a policy of fixed dates has a limit too", "limit with a fixed schedule", shelfmark{"termed", "", ""}, shelfmark{"termed", "", ""}, material},
		{"the temporary loan type is the one that counts", "limit for the reading room", shelfmark{"temporary", "reading room", ""}, shelfmark{"temporary", "", "reading room"}, both},
		{"a permanent one behind a temporary does not", "limit for the reading room", shelfmark{"temporary", "reading room", "usual"}, shelfmark{"temporary", "reading room", ""}, ""},
		{"a rule of patron groups alone has no limit", "limit ignored without material or loan type", shelfmark{"grouped", "", ""}, shelfmark{"grouped", "", ""}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			t.Logf("stands for FOLIO's %q", tt.folio)
			id, patron := p.addPatron(t)
			var barcodes []string
			for _, m := range []shelfmark{tt.first, tt.then} {
				_, barcode := p.addItem(t, record{
					"materialTypeId": materials[m.material], "permanentLoanTypeId": loanTypes[m.loanType],
				}, m.temporaryType(loanTypes))
				barcodes = append(barcodes, barcode)
			}
			readObject(t, p.lendBook(t, 0, barcodes[0], patron), http.StatusCreated)
			second := p.lendBook(t, 0, barcodes[1], patron)
			want := 1
			if tt.overLimitFor == "" {
				readObject(t, second, http.StatusCreated)
				want = 2
			} else if got, message := joinMessages(readRefusals(t, second, http.StatusUnprocessableEntity)), "Patron has reached maximum limit of 1 items for "+tt.overLimitFor; got != message {
				t.Errorf("got %q, want %q", got, message)
			}
			if n := p.countOpenLoans(t, id); n != want {
				t.Errorf("the patron has %d loans, want %d", n, want)
			}
		})
	}
}
