package integration_test

import (
	"net/http"
	"testing"
)

// shelfmark names an item's types, on which rules depend. An empty material or loan type is
// the library's own; an empty temporary loan type is none.
type shelfmark struct{ material, loanType, temporary string }

// temporaryType returns the property for the temporary loan type, nil without one.
func (m shelfmark) temporaryType(loanTypes map[string]string) record {
	if m.temporary == "" {
		return nil
	}
	return record{"temporaryLoanTypeId": loanTypes[m.temporary]}
}

func TestScenarios_Limits(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 1)
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
		all      = "combination of patron group, material type and loan type " +
			"[ITEM_LIMIT_PATRON_GROUP_MATERIAL_TYPE_LOAN_TYPE]"
	)
	for _, tt := range []struct {
		name, folio  string
		first, then  shelfmark
		overLimitFor string // empty if the second item is lent too
	}{
		{
			name: "a rule within a rule names both types", folio: "limit by rules of several lines",
			first: shelfmark{
				material: "nested", loanType: "reading room",
			}, then: shelfmark{material: "nested", loanType: "reading room"}, overLimitFor: both,
		},
		{
			name: "its parent has no limit", folio: "limit by rules of several lines",
			first: shelfmark{material: "nested", loanType: "reading room"}, then: shelfmark{material: "nested"},
		},
		{
			name: "loans by its parent do not count for it", folio: "limit by rules of several lines",
			first: shelfmark{material: "nested"}, then: shelfmark{material: "nested", loanType: "reading room"},
		},
		{
			name: "a rule within two rules names all three", folio: "limit by patron group, material type and loan type",
			first: shelfmark{
				material: "deep", loanType: "reading room",
			}, then: shelfmark{material: "deep", loanType: "reading room"}, overLimitFor: all,
		},
		{
			name: "a book of another loan type counts", folio: "limit by material type, loan type not present",
			first: shelfmark{loanType: "reading room"}, then: shelfmark{}, overLimitFor: material,
		},
		{
			name: "a policy of fixed dates has a limit too", folio: "limit with a fixed schedule",
			first: shelfmark{material: "termed"}, then: shelfmark{material: "termed"}, overLimitFor: material,
		},
		{
			name: "the temporary loan type counts", folio: "limit for the reading room",
			first: shelfmark{
				material: "temporary", loanType: "reading room",
			}, then: shelfmark{material: "temporary", temporary: "reading room"}, overLimitFor: both,
		},
		{
			name: "a permanent loan type with a temporary one does not count", folio: "limit for the reading room",
			first: shelfmark{
				material: "temporary", loanType: "reading room", temporary: "usual",
			}, then: shelfmark{material: "temporary", loanType: "reading room"},
		},
		{
			name: "a rule of patron groups alone has no limit", folio: "limit ignored without material or loan type",
			first: shelfmark{material: "grouped"}, then: shelfmark{material: "grouped"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			t.Logf("corresponds to FOLIO's %q", tt.folio)
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
			} else if got, message := joinMessages(readRefusals(t, second,
				http.StatusUnprocessableEntity)), "Patron has reached maximum limit of 1 items for "+
				tt.overLimitFor; got != message {
				t.Errorf("got %q, want %q", got, message)
			}
			if n := p.countOpenLoans(t, id); n != want {
				t.Errorf("the patron has %d loans, want %d", n, want)
			}
		})
	}
}
