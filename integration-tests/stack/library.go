package stack

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/google/uuid"
)

// Library is a tenant with the records of a check-out: one location, one material type, one
// patron group, and a loan policy with a limit.
type Library struct {
	Storage Client

	ServicePointID, LocationID, MaterialTypeID, LoanTypeID string
	GroupID, HoldingsID, PolicyID                          string
}

// RequestPolicyID is the request policy of each Library.
const RequestPolicyID = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378"

// NoticePolicyID is the patron notice policy of each Library.
const NoticePolicyID = "a1b2c3d4-1ab6-4ac2-afdf-8b2df0434378"

// The policies of fines and fees of each Library.
const (
	OverdueFinePolicyID = "a1b2c3d4-1ab6-4ac2-afdf-8b2df0434379"
	LostItemPolicyID    = "a1b2c3d4-1ab6-4ac2-afdf-8b2df043437a"
)

// record is a FOLIO record.
type record = map[string]any

// NewLibrary installs the tenant and stores its records. A patron may have as many books as
// the limit says, for four weeks.
func NewLibrary(ctx context.Context, storage Client, limit int) (*Library, error) {
	if err := storage.InstallTenant(ctx, false); err != nil {
		return nil, err
	}
	l := &Library{
		Storage: storage, ServicePointID: uuid.NewString(), LocationID: uuid.NewString(), MaterialTypeID: uuid.NewString(),
		LoanTypeID: uuid.NewString(), GroupID: uuid.NewString(), HoldingsID: uuid.NewString(), PolicyID: uuid.NewString(),
	}
	instance, institution, campus, branch := uuid.NewString(), uuid.NewString(), uuid.NewString(), uuid.NewString()
	for _, r := range []struct {
		path string
		body record
	}{
		{"/groups", record{"id": l.GroupID, "group": "readers"}},
		{"/material-types", record{"id": l.MaterialTypeID, "name": "book"}},
		{"/loan-types", record{"id": l.LoanTypeID, "name": "Can circulate"}},
		{"/service-points", record{"id": l.ServicePointID, "name": "Desk", "code": "desk", "discoveryDisplayName": "Desk", "pickupLocation": true, "holdShelfExpiryPeriod": record{"duration": 3, "intervalId": "Weeks"}}},
		{"/location-units/institutions", record{"id": institution, "name": "University"}},
		{"/location-units/campuses", record{"id": campus, "name": "City", "institutionId": institution}},
		{"/location-units/libraries", record{"id": branch, "name": "Main", "campusId": campus}},
		{"/locations", record{
			"id": l.LocationID, "name": "Main", "code": "main", "institutionId": institution, "campusId": campus,
			"libraryId": branch, "primaryServicePoint": l.ServicePointID, "servicePointIds": []string{l.ServicePointID},
		}},
		{"/instance-storage/instances", record{"id": instance, "title": "A Book of Many Copies", "source": "local", "instanceTypeId": uuid.NewString()}},
		{"/holdings-storage/holdings", record{"id": l.HoldingsID, "instanceId": instance, "permanentLocationId": l.LocationID, "sourceId": uuid.NewString()}},
		{"/request-policy-storage/request-policies", record{"id": RequestPolicyID, "name": "All", "requestTypes": []string{"Hold", "Page", "Recall"}}},
		{"/patron-notice-policy-storage/patron-notice-policies", record{"id": NoticePolicyID, "name": "None"}},
		{"/overdue-fines-policies", record{"id": OverdueFinePolicyID, "name": "No fines"}},
		{"/lost-item-fees-policies", record{"id": LostItemPolicyID, "name": "No fees"}},
		{"/loan-policy-storage/loan-policies", record{
			"id": l.PolicyID, "name": "Limited", "loanable": true, "renewable": true,
			"loansPolicy":    record{"profileId": "Rolling", "itemLimit": limit, "period": record{"duration": 4, "intervalId": "Weeks"}},
			"renewalsPolicy": record{"unlimited": true, "renewFromId": "SYSTEM_DATE"},
		}},
	} {
		a, err := storage.Must(ctx, http.MethodPost, r.path, r.body)
		if err != nil && a.Status != http.StatusNotFound { // earlier builds, for make bench, lack some types
			return nil, err
		}
	}
	_, err := storage.Must(ctx, http.MethodPut, "/circulation-rules-storage", record{"rulesAsText": l.formatRules()})
	return l, err
}

// formatRules returns rules that lend books by the policy with the limit.
func (l *Library) formatRules() string {
	line := fmt.Sprintf("l %s r %s n %s o %s i %s", l.PolicyID, RequestPolicyID, NoticePolicyID, OverdueFinePolicyID, LostItemPolicyID)
	return "priority: t, s, c, b, a, m, g\nfallback-policy: " + line + "\nm " + l.MaterialTypeID + ": " + line + "\n"
}

// AddPatron registers a patron with a new barcode and returns its id.
func (l *Library) AddPatron(ctx context.Context, barcode string) (string, error) {
	id := uuid.NewString()
	_, err := l.Storage.Must(ctx, http.MethodPost, "/users", record{
		"id": id, "username": barcode, "barcode": barcode, "active": true, "patronGroup": l.GroupID,
		"personal": record{"lastName": "Reader", "firstName": barcode},
	})
	return id, err
}

// AddBook adds a copy of the book with a new barcode and returns its id.
func (l *Library) AddBook(ctx context.Context, barcode string) (string, error) {
	id := uuid.NewString()
	_, err := l.Storage.Must(ctx, http.MethodPost, "/item-storage/items", record{
		"id": id, "barcode": barcode, "holdingsRecordId": l.HoldingsID, "materialTypeId": l.MaterialTypeID,
		"permanentLoanTypeId": l.LoanTypeID, "status": record{"name": "Available"},
	})
	return id, err
}

// CountOpenLoans counts the patron's open loans.
func (l *Library) CountOpenLoans(ctx context.Context, userID string) (int, error) {
	return l.countRecords(ctx, "/loan-storage/loans?limit=0&query="+url.QueryEscape(`status.name=="Open" and userId=="`+userID+`"`))
}

// CountLocks counts all stored locks, also outdated ones.
func (l *Library) CountLocks(ctx context.Context) (int, error) {
	return l.countRecords(ctx, "/check-out-lock-storage?limit=1")
}

// countRecords returns the totalRecords of a list.
func (l *Library) countRecords(ctx context.Context, path string) (int, error) {
	a, err := l.Storage.Must(ctx, http.MethodGet, path, nil)
	if err != nil {
		return 0, err
	}
	var list struct {
		TotalRecords int `json:"totalRecords"`
	}
	return list.TotalRecords, a.JSON(&list)
}
