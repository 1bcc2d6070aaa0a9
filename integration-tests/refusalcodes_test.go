package integration_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"checkoutlock/schemas/fault"
)

const (
	checkInPath = "/circulation/check-in-by-barcode"
	renewalPath = "/circulation/renew-by-barcode"
	unknownID   = "6a1c9b0e-52f1-4a0c-8f58-3d1f0c5b7a11"
)

// Each refusal has a status, a code in the header, and a list of errors with a message, a code and the
// list of parameters. FOLIO's pages read that list without a look whether it is there, so it may be
// empty, but never absent: ErrorModal.js of ui-checkout, withRenew.js of ui-users.
func TestRefusals_Codes(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 5)
	userID, patron := p.addPatron(t)
	_, other := p.addPatron(t)
	_, book := p.addItem(t)
	onLoanID, onLoan := p.addItem(t)
	loan := readObject(t, p.lendBook(t, 0, onLoan, patron), http.StatusCreated)
	_, work := p.addItem(t, record{"status": record{"name": "Intellectual item"}})
	_, claimed := p.addItem(t, record{"status": record{"name": "Claimed returned"}})
	blockedID, blocked := p.addPatron(t)
	p.storeAutomatedBlocks(t, blockedID, record{"blockBorrowing": true, "message": "Owes too much"})
	expired := p.addUser(t, record{"expirationDate": past})
	page := p.newPageRequest(t)
	names := strings.NewReplacer("{patron}", patron, "{other}", other, "{book}", book, "{onLoan}", onLoan, "{work}", work,
		"{claimed}", claimed, "{blocked}", blocked, "{expired}", expired, "{desk}", p.ServicePointID,
		"{onLoanID}", onLoanID, "{userID}", userID, "{loan}", loan["id"].(string))
	const (
		lend      = `{"itemBarcode":"{book}","userBarcode":"{patron}","servicePointId":"{desk}"}`
		giveBack  = `{"itemBarcode":"{book}","servicePointId":"{desk}","checkInDate":"2026-10-01T09:30:00Z"}`
		wrongName = ", but names of properties are compared exactly [PROPERTY_MISSING] "
	)
	for _, tt := range []struct {
		name, path, body string
		change           record // of the body, or of a request
		status           int    // 422 if it is 0
		code             fault.Code
		want             string
	}{
		{
			name: "lending nothing", path: checkOutPath, body: `{}`,
			want: "Check out must be performed at a service point [PROPERTY_MISSING] (servicePointId=null)\n" +
				"userBarcode is required: a barcode as text [USER_BARCODE_NOT_FOUND] (userBarcode=null)\n" +
				"itemBarcode is required: a barcode as text [PROPERTY_MISSING] (itemBarcode=null)",
		},
		{
			name: "lending with misspelt names", path: checkOutPath,
			body: `{"itembarcode":"{book}","user_barcode":"{patron}","servicePointID":"{desk}"}`,
			want: "Check out must be performed at a service point. It was sent as servicePointID" + wrongName +
				"(sentAs=servicePointID) (servicePointId=null)\n" +
				"userBarcode is required: a barcode as text. It was sent as user_barcode" + wrongName +
				"(sentAs=user_barcode) (userBarcode=null)\n" +
				"itemBarcode is required: a barcode as text. It was sent as itembarcode" + wrongName +
				"(itemBarcode=null) (sentAs=itembarcode)",
		},
		{
			name: "lending at no UUID", path: checkOutPath, body: lend, change: record{"servicePointId": "desk"},
			want: "servicePointId must be a UUID [INVALID] (servicePointId=desk)",
		},
		{
			name: "lending to an unknown card", path: checkOutPath, body: lend, change: record{"userBarcode": "x"},
			want: "Could not find user with matching barcode [USER_BARCODE_NOT_FOUND] (userBarcode=x)",
		},
		{
			name: "lending to an expired card", path: checkOutPath, body: lend, change: record{"userBarcode": expired},
			want: "Cannot check out to inactive user [USER_IS_INACTIVE_OR_EXPIRED] (userBarcode={expired})",
		},
		{
			name: "lending to a blocked patron", path: checkOutPath, body: lend, change: record{"userBarcode": blocked},
			want: "Owes too much [USER_IS_BLOCKED_AUTOMATICALLY] {patronBlock: circulation.override-patron-block.post}",
		},
		{
			name: "lending an unknown item", path: checkOutPath, body: lend, change: record{"itemBarcode": "x"},
			want: "No item with barcode x could be found [ITEM_BARCODE_NOT_FOUND] (itemBarcode=x)",
		},
		{
			name: "lending an item twice to one patron", path: checkOutPath, body: lend, change: record{"itemBarcode": onLoan},
			want: "Item is already checked out to this patron [ITEM_ALREADY_CHECKED_OUT_TO_PATRON] (itemBarcode={onLoan})",
		},
		{
			name: "lending an item of another", path: checkOutPath, body: lend,
			change: record{"itemBarcode": onLoan, "userBarcode": other},
			want:   "Item is already checked out [ITEM_ALREADY_CHECKED_OUT] (itemBarcode={onLoan})",
		},
		{
			name: "lending a work", path: checkOutPath, body: lend, change: record{"itemBarcode": work},
			want: "A Book of Many Copies (book) (Barcode: {work}) has the item status Intellectual item and cannot be " +
				"checked out [ITEM_STATUS] (itemBarcode={work})",
		},
		{
			name: "lending by a policy that is not there", path: checkOutPath, body: lend,
			change: record{"forceLoanPolicyId": "x"}, want: "forceLoanPolicyId must be a UUID [INVALID] (forceLoanPolicyId=x)",
		},
		{
			name: "what is no object", path: checkOutPath, body: `["itemBarcode"]`,
			status: http.StatusBadRequest, code: fault.Malformed,
		},
		{
			name: "a barcode that is no text", path: checkOutPath, body: `{"itemBarcode":1}`,
			status: http.StatusBadRequest, code: fault.Malformed,
		},
		{
			name: "giving back nothing", path: checkInPath, body: `{"item_barcode":"1"}`,
			want: "Checkin request must have an item barcode. It was sent as item_barcode" + wrongName +
				"(itemBarcode=null) (sentAs=item_barcode)\n" +
				"Checkin request must have a service point id [PROPERTY_MISSING] (servicePointId=null)\n" +
				"Checkin request must have an check in date [PROPERTY_MISSING] (checkInDate=null)",
		},
		{
			name: "giving back an unknown item", path: checkInPath, body: giveBack, change: record{"itemBarcode": "x"},
			want: "No item with barcode x exists [ITEM_BARCODE_NOT_FOUND] (itemBarcode=x)",
		},
		{
			name: "giving back what was claimed returned", path: checkInPath, body: giveBack,
			change: record{"itemBarcode": claimed},
			want: "Item is claimed returned, a resolution is required to check in [ITEM_CLAIMED_RETURNED] " +
				"(claimedReturnedResolution=null)",
		},
		{
			name: "renewing nothing", path: renewalPath, body: `{"itembarcode":"1"}`,
			want: "Renewal request must have an item barcode. It was sent as itembarcode, but names of properties are " +
				"compared exactly [RENEWAL_REQUEST_ITEM_BARCODE_REQUIRED] (itemBarcode=null) (sentAs=itembarcode)",
		},
		{
			name: "renewing without a card", path: renewalPath, body: `{"itemBarcode":"1"}`,
			want: "Renewal request must have a user barcode [RENEWAL_REQUEST_USER_BARCODE_REQUIRED] (userBarcode=null)",
		},
		{
			name: "renewing an item that is not lent", path: renewalPath,
			body: `{"itemBarcode":"{book}","userBarcode":"{patron}"}`,
			want: "No open loan of the item with barcode {book} exists [ITEM_NOT_ON_LOAN] (itemBarcode={book})",
		},
		{
			name: "renewing for another", path: renewalPath, body: `{"itemBarcode":"{onLoan}","userBarcode":"{other}"}`,
			want: "Cannot renew item checked out to different user [ITEM_CHECKED_OUT_TO_DIFFERENT_USER] (userBarcode={other})",
		},
		{
			name: "renewing nothing by id", path: "/circulation/renew-by-id", body: `{"item_id":"1"}`,
			want: "Renewal request must have an item ID. It was sent as item_id" + wrongName + "(itemId=null) (sentAs=item_id)",
		},
		{
			name: "requesting for no patron", path: requestsPath, change: record{"requesterId": unknownID},
			want: "A valid user and patron group are required. User is null [USER_NOT_FOUND] (userId=" + unknownID + ")",
		},
		{
			name: "requesting no item", path: requestsPath, change: record{"itemId": nil},
			want: "Cannot create an item level request with no item ID [PROPERTY_MISSING] (itemId=null)",
		},
		{
			name: "requesting what the patron has", path: requestsPath,
			change: record{"itemId": onLoanID, "requesterId": userID, "requestType": "Hold"},
			want: "This requester already has this item on loan [REQUESTER_ALREADY_HAS_THIS_ITEM_ON_LOAN] " +
				"(itemId={onLoanID}) (loanId={loan}) (userId={userID})",
		},
		{
			name: "requesting to no desk", path: requestsPath, change: record{"pickupServicePointId": unknownID},
			want: "Pickup service point does not exist [SERVICE_POINT_NOT_FOUND] (pickupServicePointId=" + unknownID + ")",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var body any = json.RawMessage(names.Replace(tt.body))
			if tt.path == requestsPath {
				body = setFields(setFields(record{}, page), tt.change)
			} else if tt.change != nil {
				sent := record{}
				if err := json.Unmarshal([]byte(names.Replace(tt.body)), &sent); err != nil {
					t.Fatal(err)
				}
				body = setFields(sent, tt.change)
			}
			if tt.status == 0 {
				tt.status, tt.code = http.StatusUnprocessableEntity, fault.Invalid
			}
			a := callEndpoint(t, p.machines[0], http.MethodPost, tt.path, body)
			if got := a.Header.Get(fault.Header); got != string(tt.code) {
				t.Errorf("got the header %q, want %q", got, tt.code)
			}
			list := readRefusals(t, a, tt.status)
			if got, want := spellRefusals(list), names.Replace(tt.want); want != "" && got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			var raw struct{ Errors []map[string]json.RawMessage }
			if err := a.JSON(&raw); err != nil {
				t.Fatal(err)
			}
			for i, e := range raw.Errors {
				if len(e["parameters"]) < 2 || e["parameters"][0] != '[' || list[i].Code == "" || list[i].Code == "-1" {
					t.Errorf("error %s is %s, want a code and a list of parameters", strconv.Itoa(i), a.Body)
				}
			}
		})
	}
}
