package integration_test

import (
	"testing"

	"github.com/google/uuid"
)

// collection is a type of records, for the endpoints that all types have.
type collection struct {
	path, key string
	index     string // a text index for CQL
	body      record
	texts     []string
}

// collections returns circulation-storage's types of records.
func (p *pair) collections(t *testing.T) []collection {
	t.Helper()
	id := uuid.NewString
	institution := p.findOrAddRecord(t, "/location-units/institutions", "locinsts", record{"name": id()})
	campus := p.findOrAddRecord(t, "/location-units/campuses", "loccamps", record{
		"name": id(), "institutionId": institution,
	})
	library := p.findOrAddRecord(t, "/location-units/libraries", "loclibs", record{"name": id(), "campusId": campus})
	condition := p.findOrAddRecord(t, "/patron-block-conditions", "patronBlockConditions", record{"name": id()})
	return []collection{
		{
			path: "/groups", key: "usergroups", index: "group",
			body: record{"group": "new " + id(), "desc": "d", "expirationOffsetInDays": 3}, texts: []string{"group", "desc"},
		},
		{path: "/users", key: "users", index: "username", body: record{
			"username": "new " + id(), "barcode": id(), "active": true, "patronGroup": p.GroupID,
			"expirationDate": "2030-01-01T00:00:00Z",
			"personal":       record{"lastName": "New"},
		}, texts: []string{"username", "barcode"}},
		{
			path: "/material-types", key: "mtypes", index: "name", body: record{"name": "new " + id(), "source": "local"},
			texts: []string{"name", "source"},
		},
		{path: "/loan-types", key: "loantypes", index: "name", body: record{"name": "new " + id()}, texts: []string{"name"}},
		{path: "/service-points", key: "servicepoints", index: "name", body: record{
			"name": "new " + id(), "code": id(), "discoveryDisplayName": "New", "pickupLocation": false,
		}, texts: []string{"name", "code", "discoveryDisplayName"}},
		{path: "/locations", key: "locations", index: "name", body: record{
			"name": "new " + id(), "code": id(), "institutionId": institution, "campusId": campus, "libraryId": library,
			"primaryServicePoint": p.ServicePointID, "servicePointIds": []any{p.ServicePointID}, "isActive": true,
		}, texts: []string{"name", "code"}},
		{path: "/instance-storage/instances", key: "instances", index: "title", body: record{
			"title": "New", "source": "local", "instanceTypeId": id(), "contributors": []any{},
		}, texts: []string{"title", "source"}},
		{path: "/holdings-storage/holdings", key: "holdingsRecords", index: "callNumber", body: record{
			"instanceId": p.readInstanceID(t), "permanentLocationId": p.LocationID, "sourceId": id(), "callNumber": "A 1",
		}, texts: []string{"callNumber"}},
		{path: "/item-storage/items", key: "items", index: "barcode", body: record{
			"barcode": id(), "holdingsRecordId": p.HoldingsID, "materialTypeId": p.MaterialTypeID,
			"permanentLoanTypeId": p.LoanTypeID,
			"status":              record{"name": "Available"},
		}, texts: []string{"barcode"}},
		{path: "/loan-policy-storage/loan-policies", key: "loanPolicies", index: "name", body: record{
			"name": "new " + id(), "loanable": true, "renewable": false,
			"loansPolicy": record{"profileId": "Rolling", "itemLimit": 3, "period": record{"duration": 1, "intervalId": "Days"}},
		}, texts: []string{"name"}},
		{path: "/loan-storage/loans", key: "loans", index: "action", body: record{
			"userId": id(), "itemId": id(), "loanDate": "2026-03-01T10:00:00Z", "dueDate": "2026-04-01T10:00:00Z",
			"action": "checkedout",
			"status": record{"name": "Closed"}, "renewalCount": 1, "isDcb": false,
		}, texts: []string{"action"}},
		{
			path: "/location-units/institutions", key: "locinsts", index: "name",
			body: record{"name": "new " + id(), "code": "I"}, texts: []string{"name", "code"},
		},
		{
			path: "/location-units/campuses", key: "loccamps", index: "name",
			body: record{"name": "new " + id(), "code": "C", "institutionId": institution}, texts: []string{"name", "code"},
		},
		{
			path: "/location-units/libraries", key: "loclibs", index: "name",
			body: record{"name": "new " + id(), "code": "L", "campusId": campus}, texts: []string{"name", "code"},
		},
		{
			path: "/fixed-due-date-schedule-storage/fixed-due-date-schedules", key: "fixedDueDateSchedules", index: "name",
			body: record{
				"name": "new " + id(), "schedules": []any{record{"from": "2026-01-01", "to": "2026-02-01", "due": "2026-03-01"}},
			}, texts: []string{"name"},
		},
		{
			path: "/request-policy-storage/request-policies", key: "requestPolicies", index: "name",
			body: record{"name": "new " + id(), "requestTypes": []any{"Hold"}}, texts: []string{"name"},
		},
		{
			path: "/patron-notice-policy-storage/patron-notice-policies", key: "patronNoticePolicies", index: "name",
			body: record{
				"name": "new " + id(), "active": true, "loanNotices": []any{},
			}, texts: []string{"name"},
		},
		{
			path: "/overdue-fines-policies", key: "overdueFinePolicies", index: "name",
			body:  record{"name": "new " + id(), "overdueFine": record{"quantity": 1, "intervalId": "day"}},
			texts: []string{"name"},
		},
		{
			path: "/lost-item-fees-policies", key: "lostItemFeePolicies", index: "name",
			body: record{"name": "new " + id(), "lostItemReturned": "Charge"}, texts: []string{"name", "lostItemReturned"},
		},
		{path: "/staff-slips-storage/staff-slips", key: "staffSlips", index: "name", body: record{
			"name": "new " + id(), "active": true, "template": "<p></p>",
		}, texts: []string{"name", "template"}},
		{path: "/cancellation-reason-storage/cancellation-reasons", key: "cancellationReasons", index: "name", body: record{
			"name": "new " + id(), "requiresAdditionalInformation": true,
		}, texts: []string{"name"}},
		{
			path: "/request-preference-storage/request-preference", key: "requestPreferences", index: "fulfillment",
			body: record{
				"userId": id(), "holdShelf": true, "delivery": true, "fulfillment": "Delivery",
			}, texts: []string{},
		},
		{
			path: "/addresstypes", key: "addressTypes", index: "addressType", body: record{"addressType": "new " + id()},
			texts: []string{"addressType"},
		},
		{path: "/circulation-settings-storage/circulation-settings", key: "circulationSettings", index: "name", body: record{
			"name": "new " + id(), "value": record{"titleLevelRequestsFeatureEnabled": false},
		}, texts: []string{"name"}},
		{path: "/proxiesfor", key: "proxiesFor", index: "status", body: record{
			"userId": id(), "proxyUserId": id(), "status": "Active", "expirationDate": "2030-01-01T00:00:00Z",
		}, texts: []string{"status"}},
		{
			path: "/manualblocks", key: "manualblocks", index: "desc",
			body: record{"userId": id(), "desc": "New", "borrowing": true}, texts: []string{"desc"},
		},
		{
			path: "/patron-block-conditions", key: "patronBlockConditions", index: "name",
			body: record{"name": "New", "valueType": "Integer", "message": ""}, texts: []string{"name", "message"},
		},
		{path: "/patron-block-limits", key: "patronBlockLimits", index: "patronGroupId", body: record{
			"patronGroupId": id(), "conditionId": condition, "value": 3,
		}, texts: []string{}},
		{
			path: "/request-storage/requests", key: "requests", index: "patronComments", body: newRequest(),
			texts: []string{"patronComments"},
		},
		{
			path: "/patron-action-session-storage/patron-action-sessions", key: "patronActionSessions", index: "actionType",
			body: record{
				"patronId": id(), "loanId": id(), "actionType": "Check-in",
			}, texts: []string{},
		},
		{
			path: "/check-in-storage/check-ins", key: "checkIns", index: "itemStatusPriorToCheckIn",
			body: record{
				"occurredDateTime": "2026-03-01T10:00:00Z", "itemId": id(), "servicePointId": id(), "performedByUserId": id(),
				"itemStatusPriorToCheckIn": "Missing",
			}, texts: []string{"itemStatusPriorToCheckIn"},
		},
		{
			path: "/scheduled-notice-storage/scheduled-notices", key: "scheduledNotices", index: "triggeringEvent",
			body: record{
				"nextRunTime": "2026-03-01T10:00:00Z", "triggeringEvent": "Due date",
				"noticeConfig": record{"timing": "Before", "templateId": id(), "format": "Email"},
			}, texts: []string{},
		},
		{
			path: "/actual-cost-record-storage/actual-cost-records", key: "actualCostRecords", index: "additionalInfoForStaff",
			body: record{
				"lossType": "Aged to lost", "lossDate": "2026-03-01T10:00:00Z", "additionalInfoForStaff": "new",
				"user": record{"id": id(), "lastName": "Reader"}, "loan": record{"id": id()},
				"item": record{
					"id": id(), "materialTypeId": id(), "materialType": "book", "loanTypeId": id(), "loanType": "l",
					"holdingsRecordId": id(),
				},
				"instance": record{"id": id(), "title": "A Book"},
				"feeFine":  record{"ownerId": id(), "owner": "Desk", "typeId": id(), "type": "Lost"},
			}, texts: []string{"additionalInfoForStaff"},
		},
		{
			path: "/tlr-feature-toggle-job-storage/tlr-feature-toggle-jobs", key: "tlrFeatureToggleJobs", index: "status",
			body: record{"status": "done", "errors": []any{"none"}}, texts: []string{},
		},
		{path: "/self-check-terminals", key: "selfCheckTerminals", index: "login", body: record{
			"login": id(), "name": "New", "servicePointId": p.ServicePointID,
		}, texts: []string{"login", "name"}},
		{
			path: "/settings/entries", key: "items", index: "scope", body: record{"scope": "new", "key": id(), "userId": id()},
			texts: []string{"scope", "key"},
		},
	}
}

// newRequest returns the only request for an unknown item.
func newRequest() record {
	id := uuid.NewString
	return record{
		"itemId": id(), "holdingsRecordId": id(), "instanceId": id(), "requesterId": id(), "requestType": "Hold",
		"requestLevel": "Item",
		"requestDate":  "2026-03-01T10:00:00Z", "fulfillmentPreference": "Hold Shelf", "status": "Open - Not yet filled",
		"position":       1,
		"patronComments": "new",
	}
}

// findOrAddRecord returns the id of a record in a collection, and adds r to an empty one.
func (p *pair) findOrAddRecord(t *testing.T, path, key string, r record) string {
	t.Helper()
	if list, _ := p.readRecord(t, path)[key].([]any); len(list) > 0 {
		id, _ := list[0].(map[string]any)["id"].(string)
		return id
	}
	return p.addRecord(t, path, r)
}

// newPageRequest returns a body that requests an available item through circulation.
func (p *pair) newPageRequest(t *testing.T) record {
	t.Helper()
	requester, _ := p.addPatron(t)
	itemID, _ := p.addItem(t)
	return record{
		"requestLevel": "Item", "requestType": "Page", "requestDate": "2026-03-01T10:00:00Z",
		"fulfillmentPreference": "Hold Shelf",
		"pickupServicePointId":  p.ServicePointID, "requesterId": requester, "itemId": itemID, "patronComments": "new",
		"instanceId": p.readInstanceID(t),
	}
}
