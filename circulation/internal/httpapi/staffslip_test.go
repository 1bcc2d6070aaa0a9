package httpapi_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"testing"
	"time"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
)

// slipOf returns the staff slip in the answer to a check-in.
func slipOf(t *testing.T, in checkin.Returned) map[string]any {
	t.Helper()
	b := &backend{in: in}
	status, _, body := b.send(t, "POST", "/circulation/check-in-by-barcode",
		`{"itemBarcode":"036","servicePointId":"s","checkInDate":"d"}`)
	var answer struct {
		StaffSlipContext map[string]any `json:"staffSlipContext"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK {
		t.Fatalf("got %d %s", status, body)
	}
	return answer.StaffSlipContext
}

// returnedBook is a described book on its way from the desk to a branch, for a patron who waits there.
func returnedBook() checkin.Returned {
	desk, branch := library.ServicePoint{ID: "desk", Name: "Desk"}, library.ServicePoint{ID: "branch", Name: "Branch"}
	return checkin.Returned{
		Copy: library.Copy{
			Item: library.Item{
				ID: "i", Barcode: "036", Status: library.Status{Name: "In transit"}, Enumeration: "v.1", Volume: "1",
				Chronology:  "1999",
				YearCaption: []string{"1999", "2000"}, DisplaySummary: "all", NumberOfPieces: "2", DescriptionOfPieces: "maps",
				AccessionNumber: "A7", AdministrativeNotes: []string{"old", "torn"}, ShelvingOrder: "PS 3",
				CallNumber: library.CallNumber{
					CallNumber: "PS3", Prefix: "f", Suffix: "s",
				}, LastCheckIn: map[string]any{"dateTime": "2026-03-01T10:00:00.000+00:00"},
			},
			Holdings: library.Holdings{ID: "h", CopyNumber: "c.2"},
			Instance: library.Instance{
				ID: "t", HRID: "in1", Title: "Interesting Times", Contributors: []library.Contributor{
					{Name: "Kidby, P."}, {Name: "Pratchett, T.", Primary: true},
				},
				Editions: []string{"1st"}, PhysicalDescriptions: []string{"352 p."}, Publication: []library.Publication{
					{DateOfPublication: "1994"}, {},
				},
				Series: []library.Series{{Value: "Discworld"}, {Value: "A second"}},
			},
			Location: library.Location{
				ID: "l", Name: "Main", DiscoveryName: "Main stacks", PrimaryServicePoint: "desk",
			}, Material: library.Named{ID: "m", Name: "Book"},
		},
		Destination: branch, At: desk,
		Request: &schemas.QueuedRequest{
			ID: "r", RequesterID: "u", PickupServicePointID: "branch", RequestDate: "2026-02-01T00:00:00Z",
			RequestExpirationDate:   "2026-05-01T00:00:00Z",
			HoldShelfExpirationDate: "2026-04-01T00:00:00Z", PatronComments: "Soon, please", DeliveryAddressTypeID: "home",
		},
		Slip: library.Slip{
			LoanType: library.Named{Name: "Can circulate"}, Library: library.Named{Name: "Science"},
			Campus:      library.Named{Name: "City"},
			Institution: library.Named{Name: "University"}, ServicePoints: []library.ServicePoint{desk, branch},
			Group: library.Group{Group: "staff"},
			Requester: library.User{ID: "U", Barcode: "569", Personal: library.Personal{
				FirstName: "Jessica", PreferredFirstName: "Jess", MiddleName: "M", LastName: "Pond",
				Addresses: []library.Address{{AddressTypeID: "work", City: "Ely"}, {
					AddressTypeID: "home", AddressLine1: "1 Street", AddressLine2: "Flat 2", City: "Bath", Region: "Avon",
					PostalCode: "BA1", CountryID: "GB",
				}},
			}},
		},
	}
}

func TestCheckIn_HasTheStaffSlip(t *testing.T) {
	t.Parallel()
	want := map[string]any{
		"item": map[string]any{
			"title": "Interesting Times", "barcode": "036", "status": "In transit", "primaryContributor": "Pratchett, T.",
			"allContributors": "Kidby, P.; Pratchett, T.", "enumeration": "v.1", "volume": "1", "chronology": "1999",
			"yearCaption":    "1999; 2000",
			"displaySummary": "all", "materialType": "Book", "loanType": "Can circulate", "copy": "c.2", "numberOfPieces": "2",
			"descriptionOfPieces": "maps", "accessionNumber": "A7", "datesOfPublication": "1994", "editions": "1st",
			"physicalDescriptions": "352 p.", "seriesStatements": "Discworld; A second", "administrativeNotes": "old; torn",
			"shelvingOrder": "PS 3",
			"instanceHrid":  "in1", "callNumber": "PS3", "callNumberPrefix": "f", "callNumberSuffix": "s",
			"effectiveLocationSpecific": "Main",
			"effectiveLocationLibrary":  "Science", "effectiveLocationCampus": "City",
			"effectiveLocationInstitution":          "University",
			"effectiveLocationDiscoveryDisplayName": "Main stacks", "effectiveLocationPrimaryServicePointName": "Desk",
			"fromServicePoint": "Desk", "toServicePoint": "Branch", "lastCheckedInDateTime": "2026-03-01T10:00:00.000+00:00",
		},
		"request": map[string]any{
			"requestID": "r", "servicePointPickup": "Branch", "requestDate": "2026-02-01T00:00:00Z",
			"requestExpirationDate":   "2026-05-01T00:00:00Z",
			"holdShelfExpirationDate": "2026-04-01T00:00:00Z", "patronComments": "Soon, please", "deliveryAddressType": "Home",
		},
		"requester": map[string]any{
			"firstName": "Jessica", "preferredFirstName": "Jess", "middleName": "M", "lastName": "Pond", "barcode": "569",
			"patronGroup":  "staff",
			"addressLine1": "1 Street", "addressLine2": "Flat 2", "city": "Bath", "region": "Avon", "postalCode": "BA1",
			"countryId": "GB", "addressType": "Home",
		},
	}
	got := slipOf(t, returnedBook())
	if printed, err := time.Parse(time.RFC3339, got["currentDateTime"].(string)); err != nil ||
		time.Since(printed).Abs() > time.Minute {
		t.Errorf("the slip was made at %v", got["currentDateTime"])
	}
	delete(got, "currentDateTime")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestCheckIn_HasNoSlipOfOthers(t *testing.T) {
	t.Parallel()
	other := returnedBook()
	other.Slip.Requester.ID = "another patron, who was first when the facts were read"
	if slip := slipOf(t, other); slip["requester"] != nil || slip["request"] == nil {
		t.Errorf("another requester: got %v, want none of the patron", slip)
	}
	home := returnedBook()
	home.Request, home.Destination = nil, library.ServicePoint{}
	slip := slipOf(t, home)
	item, _ := slip["item"].(map[string]any)
	if slip["requester"] != nil || slip["request"] != nil || item["fromServicePoint"] != "Desk" ||
		item["toServicePoint"] != nil {
		t.Errorf("at home: got %v, want the item alone, from the desk", slip)
	}
}

// Slips greet patrons by the preferred name, which most patrons do not have.
func TestCheckIn_SlipHasTheFirstNameForAPreferredOne(t *testing.T) {
	t.Parallel()
	in := returnedBook()
	in.Slip.Requester.Personal.PreferredFirstName = ""
	if requester, _ := slipOf(t, in)["requester"].(map[string]any); requester["preferredFirstName"] != "Jessica" {
		t.Errorf("got %v, want the first name", requester)
	}
}

// The item is back, so the desk gets its slip also if the type of the address cannot be read.
func TestCheckIn_SlipWithoutTheTypeOfTheAddress(t *testing.T) {
	t.Parallel()
	in := returnedBook()
	in.Request.DeliveryAddressTypeID = "work"
	slip := slipOf(t, in)
	request, _ := slip["request"].(map[string]any)
	requester, _ := slip["requester"].(map[string]any)
	if request["deliveryAddressType"] != nil || requester["addressType"] != nil || requester["city"] != "Ely" {
		t.Errorf("got %v", slip)
	}
}
