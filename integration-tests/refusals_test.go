package integration_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
)

func TestRefusals_HaveFOLIOsMessages(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	reference := p.addMaterialType(t, "reference")
	house := p.addLoanPolicy(t, "In the house", nil, record{"loanable": false, "loansPolicy": nil})
	p.storeRules(t, p.formatRules("m "+p.MaterialTypeID, p.PolicyID, "m "+reference, house))
	_, patron := p.addPatron(t)
	_, other := p.addPatron(t)
	_, book := p.addItem(t)
	_, onLoan := p.addItem(t)
	readObject(t, p.lendBook(t, 0, onLoan, patron), http.StatusCreated)
	_, notLoanable := p.addItem(t, record{"materialTypeId": reference})
	expired := p.addUser(t, record{"expirationDate": time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)})
	inactive, undecided := p.addUser(t, record{"active": false}), p.addUser(t, record{"active": nil})

	const (
		noPatron = "Could not find user with matching barcode [USER_BARCODE_NOT_FOUND]"
		noDesk   = "Check out must be performed at a service point [PROPERTY_MISSING]"
		noItem   = "No item with barcode nothing could be found [ITEM_BARCODE_NOT_FOUND]"
		required = " is required: a barcode as text "
		misspelt = "itemBarcode is required: a barcode as text. It was sent as itemBarCode, but names of properties are " +
			"compared exactly [PROPERTY_MISSING]"
		isOnLoan = "Item is already checked out [ITEM_ALREADY_CHECKED_OUT]"
		patrons  = "Item is already checked out to this patron [ITEM_ALREADY_CHECKED_OUT_TO_PATRON]"
		hasLeft  = "Cannot check out to inactive user [USER_IS_INACTIVE_OR_EXPIRED]"
	)
	tests := map[string]struct {
		body record
		want string
	}{
		"unknown patron":  {record{"userBarcode": "unknown"}, noPatron},
		"no patron":       {record{"userBarcode": nil}, "userBarcode" + required + "[USER_BARCODE_NOT_FOUND]"},
		"no item":         {record{"itemBarcode": ""}, "itemBarcode" + required + "[PROPERTY_MISSING]"},
		"a misspelt item": {record{"itemBarcode": nil, "itemBarCode": book}, misspelt},
		"expired patron":  {record{"userBarcode": expired}, hasLeft},
		"inactive patron": {record{"userBarcode": inactive}, hasLeft},
		"undecided patron": {
			record{"userBarcode": undecided}, "Cannot determine if user is active or not [USER_STATUS_CANNOT_BE_DETERMINED]",
		},
		"unknown item":               {record{"itemBarcode": "nothing"}, noItem},
		"item on loan to another":    {record{"userBarcode": other, "itemBarcode": onLoan}, isOnLoan},
		"item on loan to the patron": {record{"itemBarcode": onLoan}, patrons},
		"item that is never lent":    {record{"itemBarcode": notLoanable}, "Item is not loanable [ITEM_NOT_LOANABLE]"},
		"no service point":           {record{"servicePointId": nil}, noDesk},
		"an invalid service point":   {record{"servicePointId": "desk"}, "servicePointId must be a UUID [INVALID]"},
		"nothing known": {
			record{"userBarcode": "unknown", "itemBarcode": "nothing", "servicePointId": ""},
			noDesk + "\n" + noPatron + "\n" + noItem,
		},
		"expired patron, item on loan": {record{"userBarcode": expired, "itemBarcode": onLoan}, hasLeft + "\n" + isOnLoan},
		"their own proxy": {
			record{"proxyUserBarcode": patron}, "User cannot be proxy for themselves [USER_CANNOT_BE_PROXY_FOR_THEMSELVES]",
		},
		"a proxy without a sponsor": {
			record{"proxyUserBarcode": expired},
			"Cannot check out via inactive proxying user [PROXY_IS_INACTIVE_OR_EXPIRED]\n" +
				"Cannot check out item via proxy when relationship is invalid [PROXY_RELATIONSHIP_INVALID]",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			body := setFields(record{"itemBarcode": book, "userBarcode": patron, "servicePointId": p.ServicePointID}, tt.body)
			a := callEndpoint(t, p.machines[0], http.MethodPost, checkOutPath, body)
			if got := joinMessages(readRefusals(t, a, http.StatusUnprocessableEntity)); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
	readObject(t, p.lendBook(t, 0, book, patron), http.StatusCreated) // the refused check-outs did not lend it
}

func TestRefusals_OfItemStatuses(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	_, patron := p.addPatron(t)
	for _, status := range []string{"Declared lost", "Claimed returned", "Intellectual item", "Aged to lost"} {
		_, barcode := p.addItem(t, record{"status": record{"name": status}})
		list := readRefusals(t, p.lendBook(t, 0, barcode, patron), http.StatusUnprocessableEntity)
		want := "A Book of Many Copies (book) (Barcode: " + barcode + ") has the item status " + status +
			" and cannot be checked out [ITEM_STATUS]"
		if got := joinMessages(list); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestLimit_Refusal(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 1)
	m, l, g := "m "+p.MaterialTypeID, "t "+p.LoanTypeID, "g "+p.GroupID
	for _, tt := range []struct{ criteria, message, code string }{
		{criteria: m, message: "for material type", code: "MATERIAL_TYPE"},
		{criteria: l, message: "for loan type", code: "LOAN_TYPE"},
		{criteria: m + " + " + l, message: "for combination of material type and loan type", code: "MATERIAL_TYPE_LOAN_TYPE"},
		{
			criteria: g + " + " + m, message: "for combination of patron group and material type",
			code: "PATRON_GROUP_MATERIAL_TYPE",
		},
		{criteria: g + " + " + l, message: "for combination of patron group and loan type", code: "PATRON_GROUP_LOAN_TYPE"},
		{
			criteria: g + " + " + l + " + " + m, message: "for combination of patron group, material type and loan type",
			code: "PATRON_GROUP_MATERIAL_TYPE_LOAN_TYPE",
		},
	} {
		p.storeRules(t, p.formatRules(tt.criteria, p.PolicyID))
		id, patron := p.addPatron(t)
		books := p.addBooks(t, 2)
		readObject(t, p.lendBook(t, 0, books[0], patron), http.StatusCreated)
		list := readRefusals(t, p.lendBook(t, 0, books[1], patron), http.StatusUnprocessableEntity)
		if got, want := joinMessages(list), "Patron has reached maximum limit of 1 items "+tt.message+" [ITEM_LIMIT_"+tt.code+
			"]"; got != want {
			t.Errorf("%s: got %q, want %q", tt.criteria, got, want)
		}
		parameters := map[string]string{}
		for _, parameter := range list[0].Parameters {
			parameters[parameter.Key] = *parameter.Value
		}
		block := list[0].OverridableBlock
		if parameters["itemBarcode"] != books[1] || parameters["itemLimit"] != "1" || block.Name != "itemLimitBlock" ||
			strings.Join(block.MissingPermissions, ",") != "circulation.override-item-limit-block.post" {
			t.Errorf("got parameters %v, block %+v", parameters, block)
		}
		if n := p.countOpenLoans(t, id); n != 1 {
			t.Errorf("the patron has %d loans, want 1", n)
		}
	}
}

func TestLimit_CountsByType(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 1)
	film, toy := p.addMaterialType(t, "film"), p.addMaterialType(t, "toy")
	p.storeRules(t, p.formatRules("m "+p.MaterialTypeID, p.PolicyID, "m "+film, p.PolicyID, "g "+p.GroupID, p.PolicyID))
	_, patron := p.addPatron(t)
	for _, lent := range []struct {
		material string
		status   int
	}{
		{p.MaterialTypeID, http.StatusCreated},
		{p.MaterialTypeID, http.StatusUnprocessableEntity},
		{film, http.StatusCreated}, // the limit counts each type
		{film, http.StatusUnprocessableEntity},
		{toy, http.StatusCreated}, // a rule without a type has no limit
		{toy, http.StatusCreated},
	} {
		_, barcode := p.addItem(t, record{"materialTypeId": lent.material})
		if a := p.lendBook(t, 0, barcode, patron); a.Status != lent.status {
			t.Errorf("got %d %s, want %d", a.Status, a.Body, lent.status)
		}
	}
}

func TestLimit_UncountedLoans(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 2)
	_, patron := p.addPatron(t)
	claimedID, claimed := p.addItem(t)
	_, returned := p.addItem(t)
	for _, barcode := range []string{claimed, returned} {
		readObject(t, p.lendBook(t, 0, barcode, patron), http.StatusCreated)
	}
	books := p.addBooks(t, 3)
	readRefusals(t, p.lendBook(t, 0, books[0], patron), http.StatusUnprocessableEntity)

	p.setItemStatus(t, claimedID, "Claimed returned")
	readObject(t, p.lendBook(t, 0, books[0], patron), http.StatusCreated)
	readRefusals(t, p.lendBook(t, 0, books[1], patron), http.StatusUnprocessableEntity)
	readObject(t, p.checkInItem(t, returned, p.ServicePointID), http.StatusOK)
	readObject(t, p.lendBook(t, 0, books[1], patron), http.StatusCreated)
	readRefusals(t, p.lendBook(t, 0, books[2], patron), http.StatusUnprocessableEntity)
}

func TestRefusals_RecordsWithoutAPolicy(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 2)
	mapType, gone := p.addMaterialType(t, "map"), uuid.NewString()
	if _, err := p.Storage.Must(t.Context(), http.MethodPut, "/circulation-rules-storage", record{
		"rulesAsText": p.formatRules("m "+mapType, gone),
	}); err != nil {
		t.Fatal(err)
	}
	_, sheet := p.addItem(t, record{"materialTypeId": mapType})
	_, patron := p.addPatron(t)
	for want, a := range map[string]stack.Answer{
		"Unable to apply circulation rules to a user with null value as patronGroupId": p.lendBook(t, 0, sheet,
			p.addUser(t, record{"patronGroup": nil})),
		"Loan policy " + gone + " could not be found, please check circulation rules": p.lendBook(t, 0, sheet, patron),
	} {
		if a.Status != http.StatusInternalServerError || !strings.Contains(string(a.Body), want) {
			t.Errorf("got %d %s, want 500 %s", a.Status, a.Body, want)
		}
	}
	readObject(t, p.lendBook(t, 0, p.addBooks(t, 1)[0], patron), http.StatusCreated) // other items are lent
}
