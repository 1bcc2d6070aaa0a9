package integration_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
)

// endpoint is a route of one of the two services and its input.
type endpoint struct {
	client       stack.Client
	method, path string // ":id" stands for an id
	// body is a valid body; nil if the route has none.
	body record
	// texts are the body's properties with any text as value.
	texts []string
	// query are its query parameters.
	query []string
	// noTenant is set if the route does not need an installed tenant.
	noTenant bool
	// alwaysThere is set if the route answers 200 for any id.
	alwaysThere bool
	// ofStorage is set if the route refuses text that PostgreSQL cannot store.
	ofStorage bool
}

func (e endpoint) String() string { return e.method + " " + e.path }

// fillPath returns the endpoint's path with an id, which must be escaped.
func (e endpoint) fillPath(id string) string { return strings.Replace(e.path, ":id", id, 1) }

// bodyToSend returns the endpoint's body, or an untyped nil if it has none.
func (e endpoint) bodyToSend() any {
	if e.body == nil {
		return nil
	}
	return e.body
}

const requestsPath = "/circulation/requests"

// endpoints returns all routes of both services that have input.
func (p *pair) endpoints(t *testing.T) []endpoint {
	t.Helper()
	var all []endpoint
	for _, e := range append(p.recordEndpoints(t), storageEndpoints()...) {
		e.client, e.ofStorage = p.Storage, true
		all = append(all, e)
	}
	for _, e := range p.circulationEndpoints(t) {
		e.client = p.machines[0]
		e.client.Header = p.signIn(uuid.NewString())
		all = append(all, e)
	}
	return all
}

// recordEndpoints returns the routes that all types of records have.
func (p *pair) recordEndpoints(t *testing.T) []endpoint {
	t.Helper()
	var all []endpoint
	for _, c := range p.collections(t) {
		page := []string{"query", "offset", "limit", "totalRecords"}
		all = append(all,
			endpoint{method: http.MethodGet, path: c.path, query: page},
			endpoint{method: http.MethodPost, path: c.path, body: c.body, texts: c.texts},
			endpoint{method: http.MethodGet, path: c.path + "/:id"},
			endpoint{method: http.MethodPut, path: c.path + "/:id", body: c.body, texts: c.texts},
			endpoint{method: http.MethodDelete, path: c.path + "/:id"},
		)
	}
	return all
}

// historyParameters returns the query parameters of the history of check-outs, but code: it takes any text.
func historyParameters() []string {
	return []string{"userBarcode", "itemBarcode", "servicePointId", "outcome", "from", "until", "offset", "limit"}
}

func figureParameters() []string { return []string{"minutes", "bucketMinutes", "servicePointId"} }

// storageEndpoints returns circulation-storage's other routes.
func storageEndpoints() []endpoint {
	const locks, settings, rules = acquirePath, "/check-out-lock-settings-storage", "/circulation-rules-storage"
	id := uuid.NewString
	all := []endpoint{
		{method: http.MethodGet, path: locks, query: []string{"userId", "holder", "outdated", "offset", "limit"}},
		{method: http.MethodPost, path: locks, body: record{"userId": id(), "ttlMs": 1000, "requestId": id(), "waitMs": 1}},
		{method: http.MethodGet, path: locks + "/:id"},
		{method: http.MethodDelete, path: locks + "/:id"},
		{method: http.MethodDelete, path: locks, query: []string{"userId", "requestId"}},
		{
			method: http.MethodPost, path: locks + "/:id/forced-release",
			body: record{"reason": "stuck", "byName": "Ann"}, texts: []string{"reason", "byName"},
		},
		{method: http.MethodGet, path: "/check-out-lock-changes-storage", query: []string{"kind", "offset", "limit"}},
		{method: http.MethodGet, path: "/check-out-history-storage/check-outs", query: historyParameters()},
		{
			method: http.MethodPost, path: "/check-out-history-storage/check-outs",
			body: record{"waiting": 0, "checkOuts": []any{
				record{"id": id(), "outcome": "lent", "userBarcode": "b", "userId": id(), "waitMs": 1, "tookMs": 2},
			}},
		},
		{method: http.MethodGet, path: "/check-out-history-storage/figures", query: figureParameters()},
		{method: http.MethodPost, path: "/self-check-activity", body: record{
			"terminals": []any{record{"login": "desk-1", "connections": 1, "address": "10.0.0.1"}},
			"notes":     []any{record{"id": id(), "login": "desk-1", "kind": "cancelled", "userBarcode": "b"}},
		}},
		{method: http.MethodPost, path: "/loan-storage/check-outs", body: record{
			"loan": record{
				"id": id(), "userId": id(), "itemId": id(), "loanDate": "2026-03-01T10:00:00Z", "action": "checkedout",
			},
			"itemVersion": 1, "lockId": id(), "limit": record{"max": 3, "materialTypeId": id(), "loanTypeId": id()},
		}},
		{method: http.MethodPost, path: "/loan-storage/check-ins", body: record{
			"itemId": id(), "servicePointId": id(), "checkInDate": "2026-03-01T10:00:00Z", "itemVersion": 1,
			"itemStatus":    "Available",
			"staffMemberId": id(), "loanAction": "checkedin",
		}},
		{method: http.MethodPost, path: "/loan-storage/renewals", body: record{
			"loanId": id(), "itemId": id(), "itemVersion": 1, "judgedDueDate": "2026-03-01T10:00:00Z", "judgedRenewalCount": 0,
			"dueDate": "2026-03-05T10:00:00Z", "loanPolicyId": id(),
		}},
		{method: http.MethodPost, path: "/loan-storage/loans/:id/changes", body: record{
			"id": id(), "action": "claimedReturned", "date": "2026-03-01T10:00:00Z", "comment": "c",
		}, texts: []string{"comment"}},
		{
			method: http.MethodGet, path: "/patron-action-session-storage/expired-session-patron-ids",
			query: []string{"action_type", "session_inactivity_time_limit", "limit"},
		},
		{
			method: http.MethodPost, path: "/loan-storage/loans/:id/replacements",
			body: record{"id": id(), "loan": newLoan(id())},
		},
		{method: http.MethodPost, path: "/request-storage-batch/requests", body: record{"requests": []any{newRequest()}}},
		{method: http.MethodPost, path: "/request-storage/placements", body: record{
			"request": setFields(newRequest(), record{"id": id()}), "itemVersion": 1, "titleLevelRequests": false,
		}},
		{method: http.MethodPost, path: "/request-storage/changes", body: record{
			"request": setFields(newRequest(), record{"id": id()}), "titleLevelRequests": false, "delete": false,
		}},
		{method: http.MethodPost, path: "/request-storage/moves", body: record{
			"request": setFields(newRequest(), record{"id": id()}), "itemVersion": 1, "fromItemId": id(),
			"titleLevelRequests": false,
		}},
		{method: http.MethodPost, path: "/request-storage/queue-orders", body: record{
			"itemId": id(), "reorderedQueue": []any{record{"id": id(), "position": 1, "newPosition": 1}},
		}},
		{method: http.MethodGet, path: "/automated-patron-blocks/:id", alwaysThere: true},
		{method: http.MethodPut, path: "/automated-patron-blocks/:id", body: record{
			"automatedPatronBlocks": []any{record{"message": "new", "blockBorrowing": true}},
		}},
		{method: http.MethodPost, path: keysPath, body: record{
			"key": id(), "bodyHash": strings.Repeat("0a", 32), "claimId": id(), "leaseMs": 1000, "waitMs": 1,
		}, texts: []string{"key"}},
		{method: http.MethodPut, path: keysPath + "/:id", body: record{"answer": record{"status": 201, "body": record{}}}},
		{method: http.MethodPost, path: "/patron-pin", body: record{"id": id(), "pin": "1234"}, texts: []string{"pin"}},
		{
			method: http.MethodPost, path: "/patron-pin/verify", body: record{"id": id(), "pin": "1234"},
			texts: []string{"pin"},
		},
		{method: http.MethodPost, path: "/self-check-terminals/verify", body: record{
			"login": "desk-1", "password": id(),
		}, texts: []string{"login", "password"}},
		{method: http.MethodPost, path: "/loan-storage/check-out-facts", body: record{
			"userBarcode": "P-1", "proxyUserBarcode": "P-2", "itemBarcode": "B-1", "titleLevel": true,
		}, texts: []string{"userBarcode", "proxyUserBarcode", "itemBarcode"}},
		{method: http.MethodGet, path: settings},
		{method: http.MethodPut, path: settings, body: record{
			"value": record{"lockTtl": 3000}, "version": "0", "reason": "Monday", "byName": "Ann",
		}, texts: []string{"reason", "byName"}},
		{method: http.MethodDelete, path: settings},
		{method: http.MethodPost, path: settings + "/environment", body: record{"enabled": false, "version": "0"}},
		{method: http.MethodGet, path: rules},
		{
			method: http.MethodPost, path: "/print-events-storage/print-events-entry",
			body: record{
				"requestIds": []any{uuid.NewString()}, "requesterId": uuid.NewString(), "requesterName": "Ada",
				"printEventDate": "2026-03-01T10:00:00Z",
			}, texts: []string{"requesterName"},
		},
		{
			method: http.MethodPost, path: "/print-events-storage/print-events-status",
			body: record{"requestIds": []any{uuid.NewString()}},
		},
		{
			method: http.MethodPost, path: "/anonymize-storage-loans", body: record{"loanIds": []any{uuid.NewString()}},
		},
		{method: http.MethodPost, path: "/loan-storage/loans/anonymize/:id", alwaysThere: true},
		{method: http.MethodPut, path: rules, body: record{"rulesAsText": "text"}, texts: []string{"rulesAsText"}},
		{
			method: http.MethodPost, path: "/_/tenant", noTenant: true,
			body: record{"module_to": "m-1.0.0", "parameters": []any{}}, texts: []string{"module_to"},
		},
		{method: http.MethodGet, path: "/_/tenant/:id", noTenant: true},
		{method: http.MethodDelete, path: "/_/tenant/:id", noTenant: true},
	}
	for _, path := range []string{
		"/users", "/material-types", "/loan-types", "/service-points", "/location-units/institutions",
		"/location-units/campuses",
		"/location-units/libraries", "/locations", "/instance-storage/instances", "/holdings-storage/holdings",
		"/item-storage/items",
		"/fixed-due-date-schedule-storage/fixed-due-date-schedules", "/loan-policy-storage/loan-policies",
		"/request-policy-storage/request-policies",
		"/staff-slips-storage/staff-slips", "/cancellation-reason-storage/cancellation-reasons", "/loan-storage/loans",
		"/request-storage/requests",
		"/loan-storage/loan-history", "/scheduled-notice-storage/scheduled-notices", "/check-in-storage/check-ins",
	} {
		all = append(all, endpoint{method: http.MethodDelete, path: path, query: []string{"query"}})
	}
	return all
}

// newLoan returns an open loan of an item that does not exist.
func newLoan(itemID string) record {
	return record{"userId": uuid.NewString(), "itemId": itemID, "loanDate": "2026-03-01T10:00:00Z", "action": "checkedout"}
}

// circulationEndpoints returns circulation's routes.
func (p *pair) circulationEndpoints(t *testing.T) []endpoint {
	t.Helper()
	id := uuid.NewString
	all := []endpoint{
		{method: http.MethodPost, path: "/loan-anonymization/by-user/:id", alwaysThere: true},
		{
			method: http.MethodPost, path: printPath, body: p.newPrint(t),
			texts: []string{"requesterName"},
		},
		{method: http.MethodPost, path: checkOutPath, body: record{
			"itemBarcode": p.addBooks(t, 1)[0], "userBarcode": p.addUser(t), "servicePointId": p.ServicePointID,
			"loanDate":          "2026-03-01T10:00:00Z",
			"forceLoanPolicyId": p.PolicyID, "overrideBlocks": record{},
		}, texts: []string{"forceLoanPolicyId"}}, // an empty id means no policy
		{method: http.MethodPost, path: "/circulation/check-in-by-barcode", body: record{
			"itemBarcode": p.addBooks(t, 1)[0], "servicePointId": p.ServicePointID, "checkInDate": "2026-03-01T10:00:00Z",
		}},
		{method: http.MethodPost, path: "/circulation/check-out-by-barcode-dry-run", body: record{
			"itemBarcode": p.addBooks(t, 1)[0], "userBarcode": p.addUser(t),
		}, texts: []string{}},
		{method: http.MethodPost, path: "/circulation/renew-by-barcode", body: record{
			"itemBarcode": p.addBooks(t, 1)[0], "userBarcode": p.addUser(t), "servicePointId": p.ServicePointID,
		}, texts: []string{}},
		{method: http.MethodPost, path: "/circulation/end-patron-action-session", body: record{
			"endSessions": []any{record{"actionType": "Check-out", "patronId": id()}},
		}},
		{method: http.MethodPost, path: requestsPath, body: p.newPageRequest(t), texts: []string{"patronComments"}},
		{method: http.MethodGet, path: "/circulation/settings", query: []string{"query", "offset", "limit"}},
		{
			method: http.MethodPost, path: "/circulation/settings", body: record{"name": "new " + id(), "value": record{}},
			texts: []string{"name"},
		},
		{method: http.MethodGet, path: "/circulation/settings/:id"},
		{
			method: http.MethodPut, path: "/circulation/settings/:id", body: record{"name": "new " + id(), "value": record{}},
			texts: []string{"name"},
		},
		{method: http.MethodDelete, path: "/circulation/settings/:id", alwaysThere: true},
		{method: http.MethodGet, path: requestsPath, query: []string{"query", "offset", "limit"}},
		{method: http.MethodGet, path: requestsPath + "/:id"},
		{
			method: http.MethodPut, path: requestsPath + "/:id", body: p.newPageRequest(t), texts: []string{"patronComments"},
			alwaysThere: true,
		},
		{method: http.MethodDelete, path: requestsPath + "/:id"},
		{method: http.MethodDelete, path: requestsPath, query: []string{"query"}},
		{
			method: http.MethodPost, path: requestsPath + "/:id/move",
			body: record{"destinationItemId": id(), "requestType": "Hold"},
		},
		{
			method: http.MethodPost, path: requestsPath + "/queue/item/:id/reorder",
			body: record{"reorderedQueue": []any{record{"id": id(), "newPosition": 1}}},
		},
		{
			method: http.MethodPost, path: requestsPath + "/queue/instance/:id/reorder",
			body: record{"reorderedQueue": []any{record{"id": id(), "newPosition": 1}}},
		},
		{method: http.MethodGet, path: "/circulation/pick-slips/:id", alwaysThere: true},
		{method: http.MethodGet, path: "/circulation/search-slips/:id", alwaysThere: true},
		{method: http.MethodGet, path: "/circulation/requests-reports/hold-shelf-clearance/:id", alwaysThere: true},
		{method: http.MethodGet, path: requestsPath + "/queue/item/:id", alwaysThere: true},
		{method: http.MethodGet, path: requestsPath + "/queue/instance/:id", alwaysThere: true},
		{method: http.MethodGet, path: "/circulation/loans", query: []string{"query", "offset", "limit"}},
		{method: http.MethodGet, path: "/circulation/loans/:id"},
		{method: http.MethodPost, path: "/circulation/loans", body: newLoan(id())},
		{method: http.MethodPut, path: "/circulation/loans/:id", body: newLoan(id())},
		{method: http.MethodDelete, path: "/circulation/loans/:id"},
		{method: http.MethodDelete, path: "/circulation/loans", query: []string{"query"}},
		{
			method: http.MethodPost, path: "/circulation/loans/:id/add-info",
			body: record{"action": "staffInfoAdded", "actionComment": "c"}, texts: []string{},
		},
		{
			method: http.MethodPost, path: "/circulation/loans/:id/change-due-date",
			body: record{"dueDate": "2026-03-01T10:00:00Z"},
		},
		{method: http.MethodPost, path: "/circulation/loans/:id/claim-item-returned", body: record{
			"itemClaimedReturnedDateTime": "2026-03-01T10:00:00Z", "comment": "c",
		}, texts: []string{"comment"}},
		{method: http.MethodPost, path: "/circulation/loans/:id/declare-item-lost", body: record{
			"declaredLostDateTime": "2026-03-01T10:00:00Z", "comment": "c", "servicePointId": p.ServicePointID,
		}, texts: []string{"comment"}},
		{
			method: http.MethodPost, path: "/circulation/loans/:id/declare-claimed-returned-item-as-missing",
			body: record{"comment": "c"},
		},
		{method: http.MethodGet, path: "/circulation/rules"},
		{method: http.MethodPut, path: "/circulation/rules", body: record{"rulesAsText": p.formatRules()}},
		{method: http.MethodGet, path: settingsPath},
		{
			method: http.MethodPut, path: settingsPath,
			body:  record{"enabled": false, "lockTtlMs": 3000, "retryIntervalsMs": []any{500}, "reason": "Monday"},
			texts: []string{"reason"},
		},
		{method: http.MethodGet, path: "/circulation/check-out-lock-changes", query: []string{"kind", "offset", "limit"}},
		{
			method: http.MethodGet, path: "/circulation/check-out-locks",
			query: []string{"userId", "userBarcode", "holder", "outdated", "offset", "limit"},
		},
		{
			method: http.MethodPost, path: "/circulation/check-out-locks/:id/release", body: record{"reason": "stuck"},
			texts: []string{"reason"},
		},
		{method: http.MethodGet, path: "/circulation/check-out-history", query: historyParameters()},
		{method: http.MethodGet, path: "/circulation/check-out-figures", query: []string{"minutes"}},
		{method: http.MethodPost, path: "/circulation/check-out-explanation", body: record{
			"itemBarcode": p.addBooks(t, 1)[0], "userBarcode": p.addUser(t),
		}, texts: []string{"itemBarcode", "userBarcode"}},
	}
	for _, kind := range []string{"loan", "request", "notice", "overdue-fine", "lost-item"} {
		for _, suffix := range []string{"", "-all"} {
			all = append(all, endpoint{
				method: http.MethodGet, path: "/circulation/rules/" + kind + "-policy" + suffix,
				query: []string{"item_type_id", "loan_type_id", "patron_type_id", "location_id"},
			})
		}
	}
	return all
}
