package jsonschema_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

const someID = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378"

// valid holds, for each schema, what is just enough.
func valid() map[string]string {
	loan := `{"id":"ID","userId":"ID","itemId":"ID","loanDate":"2026-08-22T10:11:12Z","action":"checkedout"}`
	documents := map[string]string{
		"usergroup":     `{"group":"students"}`,
		"user":          `{}`,
		"material-type": `{"name":"book"}`,
		"loan-type":     `{"name":"Can circulate"}`,
		"service-point": `{"name":"Desk","code":"d1"}`,
		"location": `{"name":"Annex","code":"A","institutionId":"ID","campusId":"ID","libraryId":"ID",` +
			`"primaryServicePoint":"ID"}`,
		"instance":        `{"title":"A title"}`,
		"holdings-record": `{"instanceId":"ID","permanentLocationId":"ID"}`,
		"item": `{"materialTypeId":"ID","permanentLoanTypeId":"ID","holdingsRecordId":"ID",` +
			`"status":{"name":"Available"}}`,
		"loan-policy":    `{"name":"Two weeks","loanable":true,"renewable":false}`,
		"loan":           `{"itemId":"ID","loanDate":"2026-08-22T10:11:12Z","action":"checkedout"}`,
		"settings-entry": `{"scope":"s","key":"k","value":false}`,
		"request": `{"instanceId":"ID","requesterId":"ID","requestType":"Hold","requestLevel":"Item",` +
			`"requestDate":"2026-08-22T10:11:12Z","fulfillmentPreference":"Delivery","status":"Closed - Filled"}`,
		"request-view": `{"instanceId":"ID","requesterId":"ID","requestType":"Hold","requestLevel":"Item",` +
			`"requestDate":"2026-08-22T10:11:12Z","fulfillmentPreference":"Delivery","status":"Closed - Filled",` +
			`"requester":{"patronGroup":{"group":"students"}}}`,
		"lock-settings-edit": `{"enabled":{"value":true,"source":"tenant"},"lockTtlMs":3000,"reason":"Monday"}`,
		"request-batch": `{"requests":[{"instanceId":"ID","requesterId":"ID","requestType":"Hold",` +
			`"requestLevel":"Item","requestDate":"2026-08-22T10:11:12Z","fulfillmentPreference":"Delivery","status":"Closed - ` +
			`Filled"}]}`,
		"proxyfor":                `{}`,
		"manualblock":             `{"desc":"Owes money","userId":"ID"}`,
		"automated-patron-blocks": `{"automatedPatronBlocks":[]}`,
		"patron-block-condition":  `{"name":"Maximum number of items charged out"}`,
		"patron-block-limit":      `{"patronGroupId":"ID","conditionId":"ID"}`,
		"circulation-setting":     `{"name":"generalTlr","value":{}}`,
		"locinstitution":          `{"name":"University"}`,
		"loccampus":               `{"name":"City","institutionId":"ID"}`,
		"loclibrary":              `{"name":"Main","campusId":"ID"}`,
		"fixed-due-date-schedule": `{"name":"Terms"}`,
		"new-request": `{"itemId":"ID","requestProcessingParameters":{"overrideBlocks":{"patronBlock":{},` +
			`"comment":"agreed"}}}`,
		"request-policy":       `{"name":"All"}`,
		"patron-notice-policy": `{"name":"Courtesy"}`,
		"overdue-fine-policy":  `{"name":"A day each"}`,
		"check-in-operation": `{"occurredDateTime":"2026-08-22T10:11:12Z","itemId":"ID","servicePointId":"ID"` +
			`,"performedByUserId":"ID"}`,
		"scheduled-notice": `{"nextRunTime":"2026-08-22T10:11:12Z","noticeConfig":{"timing":"After","templateId":"ID"` +
			`,"format":"SMS"}}`,
		"actual-cost-record": `{"lossType":"Aged to lost","lossDate":"2026-08-22T10:11:12Z","user":{"id":"ID"` +
			`,"lastName":"n"},"loan":{"id":"ID"},"item":{"id":"ID","materialTypeId":"ID"` +
			`,"materialType":"m","loanTypeId":"ID","loanType":"l","holdingsRecordId":"ID"},"instance":{"id":"ID"` +
			`,"title":"t"},"feeFine":{"ownerId":"ID","owner":"o","typeId":"ID","type":"t"}}`,
		"tlr-feature-toggle-job": `{"status":"open"}`,
		"self-check-terminal":    `{"login":"desk-1","name":"Desk 1"}`, "terminal-login": `{"login":"l","password":"p"}`,
		"patron-pin": `{"id":"ID"}`, "lock-wait": `{}`, "self-check-report": `{"terminals":[{"login":"desk-1"}]}`,
		"print-events": `{"requestIds":["ID"],"requesterId":"ID","requesterName":"Ada",` +
			`"printEventDate":"2026-08-22T10:11:12Z"}`,
		"print-events-status": `{"requestIds":["ID"]}`, "anonymized-loans": `{"loanIds":["any"]}`,
		"lost-item-fee-policy":  `{"name":"By price"}`,
		"staff-slip":            `{"name":"Hold","template":"<p></p>"}`,
		"cancellation-reason":   `{"name":"Other"}`,
		"request-preference":    `{"userId":"ID","holdShelf":true,"delivery":false}`,
		"addresstype":           `{"addressType":"Home"}`,
		"patron-action-session": `{"patronId":"ID","loanId":"ID","actionType":"Check-in"}`,
		"circulation-rules":     `{"rulesAsText":""}`,
		"checkout-lock-request": `{"userId":"ID"}`,
		"key-lease":             `{"key":"k","bodyHash":"` + strings.Repeat("aB", 32) + `","claimId":"ID","leaseMs":100}`,
		"key-lease-change":      `{}`,
		"check-out-report":      `{"checkOuts":[{"id":"ID","outcome":"lent"}]}`,
		"past-check-out":        `{"id":"ID","outcome":"lent"}`,
		"forced-release":        `{"reason":"why"}`,
		"lock-settings-change":  `{"value":{}}`,
		"lock-environment":      `{"enabled":false}`,
		"check-out":             `{"loan":` + loan + `,"itemVersion":1}`,
		"check-out-subjects":    `{}`,
		"check-in": `{"itemId":"ID","servicePointId":"ID","checkInDate":"2026-08-22T10:11:12Z",` +
			`"itemVersion":1,"itemStatus":"Available"}`,
		"queue-order":     `{"reorderedQueue":[{"id":"ID","newPosition":1}]}`,
		"reordered-queue": `{"reorderedQueue":[{"id":"ID","newPosition":1}]}`,
		"request-move": `{"itemVersion":1,"request":{"id":"ID","instanceId":"ID","requesterId":"ID",` +
			`"requestType":"Hold","requestLevel":"Item","requestDate":"2026-08-22T10:11:12Z",` +
			`"fulfillmentPreference":"Delivery","status":"Open - Not yet filled"}}`,
		"request-change": `{"request":{"id":"ID","instanceId":"ID","requesterId":"ID","requestType":"Hold",` +
			`"requestLevel":"Item","requestDate":"2026-08-22T10:11:12Z","fulfillmentPreference":"Delivery","status":"Open - ` +
			`Not yet filled"}}`,
		"loan-replacement": `{"id":"ID","loan":` + loan + `}`,
		"loan-change":      `{"id":"ID","action":"staffInfoAdded"}`,
		"placement": `{"request":{"id":"ID","instanceId":"ID","requesterId":"ID","requestType":"Hold",` +
			`"requestLevel":"Item","requestDate":"2026-08-22T10:11:12Z","fulfillmentPreference":"Delivery","status":"Open - ` +
			`Not yet filled"}}`,
		"renewal": `{"loanId":"ID","itemId":"ID","itemVersion":1,"judgedRenewalCount":0,"dueDate":"2026-08-22T10:11:12Z",` +
			`"loanPolicyId":"ID"}`,
	}
	for name, doc := range documents {
		documents[name] = strings.ReplaceAll(doc, "ID", someID)
	}
	return documents
}

// with returns the schema's valid document with another member at its end, which
// replaces one of the same name.
func with(name, member string) string {
	doc := strings.TrimSuffix(valid()[name], "}")
	if doc != "{" {
		doc += ","
	}
	return doc + member + "}"
}

func TestValidate_AcceptsRequiredAndUnknownFields(t *testing.T) {
	t.Parallel()
	if got, want := len(jsonschema.Names()), len(valid()); got != want {
		t.Errorf("there are %d schemas and %d valid documents: %v", got, want, jsonschema.Names())
	}
	for name, doc := range valid() {
		if err := jsonschema.Validate(name, []byte(doc)); err != nil {
			t.Errorf("%s: %s: %v", name, doc, err)
		}
		if err := jsonschema.Validate(name, []byte(with(name, `"somethingOfOurs":{"a":[1]},"metadata":null`))); err != nil {
			t.Errorf("%s with an unknown field: %v", name, err)
		}
	}
}

// A field that is missed is one detail each, and null is missing too.
func TestValidate_NamesEachMissingField(t *testing.T) {
	t.Parallel()
	required := map[string]string{
		"usergroup": "group", "material-type": "name", "loan-type": "name", "service-point": "name code",
		"location": "name code institutionId campusId libraryId primaryServicePoint", "instance": "title",
		"holdings-record": "instanceId permanentLocationId",
		"item":            "materialTypeId permanentLoanTypeId holdingsRecordId status",
		"loan-policy":     "name loanable renewable", "loan": "itemId loanDate action", "settings-entry": "scope key value",
		"circulation-rules": "rulesAsText", "checkout-lock-request": "userId", "check-out": "loan itemVersion",
		"request":       "instanceId requesterId requestType requestLevel requestDate fulfillmentPreference status",
		"request-view":  "instanceId requesterId requestType requestLevel requestDate fulfillmentPreference status",
		"request-batch": "requests", "proxyfor": "", "manualblock": "desc userId",
		"automated-patron-blocks": "automatedPatronBlocks",
		"patron-block-condition":  "name", "patron-block-limit": "patronGroupId conditionId",
		"patron-notice-policy": "name", "overdue-fine-policy": "name",
		"check-in-operation": "occurredDateTime itemId servicePointId performedByUserId",
		"scheduled-notice":   "nextRunTime noticeConfig", "tlr-feature-toggle-job": "",
		"print-events": "requestIds requesterId requesterName printEventDate", "print-events-status": "requestIds",
		"anonymized-loans": "", "actual-cost-record": "lossType lossDate user loan item instance feeFine",
		"lost-item-fee-policy": "name", "patron-pin": "id",
		"self-check-terminal": "login name", "terminal-login": "login password",
		"staff-slip": "name template", "cancellation-reason": "name",
		"request-preference": "userId holdShelf delivery", "addresstype": "addressType",
		"circulation-setting": "name value", "locinstitution": "name", "loccampus": "name institutionId",
		"loclibrary":              "name campusId",
		"fixed-due-date-schedule": "name", "request-policy": "name",
		"patron-action-session": "patronId loanId actionType",
		"check-in":              "itemId servicePointId checkInDate itemVersion itemStatus", "user": "",
		"loan-change": "id action", "loan-replacement": "id loan", "placement": "request", "request-change": "request",
		"request-move": "request itemVersion", "queue-order": "reorderedQueue", "reordered-queue": "reorderedQueue",
		"key-lease": "key bodyHash claimId leaseMs", "check-out-report": "checkOuts",
		"past-check-out": "id outcome", "forced-release": "reason", "lock-settings-change": "value",
		"lock-environment": "enabled",
		"renewal":          "loanId itemId itemVersion judgedRenewalCount dueDate loanPolicyId",
	}
	for _, name := range jsonschema.Names() {
		err := jsonschema.Validate(name, []byte(`{"id":null}`))
		var got []string
		for _, d := range detailsOf(err) {
			if d.Code != "required" || d.Type != "1" || d.Message != d.Parameters[0].Key+" is required" {
				t.Errorf("%s: got %+v", name, d)
			}
			got = append(got, d.Parameters[0].Key)
		}
		if strings.Join(got, " ") != required[name] {
			t.Errorf("%s: got %v, want %s", name, got, required[name])
		}
	}
}

func detailsOf(err error) []fault.Detail {
	if f := (*fault.Error)(nil); errors.As(err, &f) {
		return f.Details
	}
	return nil
}

func TestValidate_FailsForAnUnknownSchema(t *testing.T) {
	t.Parallel()
	if err := jsonschema.Validate("nonsense", []byte(`{}`)); err == nil || !fault.Is(err, fault.Internal) {
		t.Errorf("got %v", err)
	}
}

func TestValidate_IsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for name, doc := range valid() {
				if err := jsonschema.Validate(name, []byte(doc)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	wg.Wait()
}
