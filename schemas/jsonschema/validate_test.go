package jsonschema_test

import (
	"errors"
	"fmt"
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
		"usergroup":               `{"group":"students"}`,
		"user":                    `{}`,
		"material-type":           `{"name":"book"}`,
		"loan-type":               `{"name":"Can circulate"}`,
		"service-point":           `{"name":"Desk","code":"d1"}`,
		"location":                `{"name":"Annex","code":"A","institutionId":"ID","campusId":"ID","libraryId":"ID","primaryServicePoint":"ID"}`,
		"instance":                `{"title":"A title"}`,
		"holdings-record":         `{"instanceId":"ID","permanentLocationId":"ID"}`,
		"item":                    `{"materialTypeId":"ID","permanentLoanTypeId":"ID","holdingsRecordId":"ID","status":{"name":"Available"}}`,
		"loan-policy":             `{"name":"Two weeks","loanable":true,"renewable":false}`,
		"loan":                    `{"itemId":"ID","loanDate":"2026-08-22T10:11:12Z","action":"checkedout"}`,
		"settings-entry":          `{"scope":"s","key":"k","value":false}`,
		"request":                 `{"instanceId":"ID","requesterId":"ID","requestType":"Hold","requestLevel":"Item","requestDate":"2026-08-22T10:11:12Z","fulfillmentPreference":"Delivery","status":"Closed - Filled"}`,
		"request-batch":           `{"requests":[{"instanceId":"ID","requesterId":"ID","requestType":"Hold","requestLevel":"Item","requestDate":"2026-08-22T10:11:12Z","fulfillmentPreference":"Delivery","status":"Closed - Filled"}]}`,
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
		"new-request":             `{"itemId":"ID","requestProcessingParameters":{"overrideBlocks":{"patronBlock":{},"comment":"agreed"}}}`,
		"request-policy":          `{"name":"All"}`,
		"patron-notice-policy":    `{"name":"Courtesy"}`,
		"staff-slip":              `{"name":"Hold","template":"<p></p>"}`,
		"cancellation-reason":     `{"name":"Other"}`,
		"request-preference":      `{"userId":"ID","holdShelf":true,"delivery":false}`,
		"addresstype":             `{"addressType":"Home"}`,
		"patron-action-session":   `{"patronId":"ID","loanId":"ID","actionType":"Check-in"}`,
		"circulation-rules":       `{"rulesAsText":""}`,
		"checkout-lock-request":   `{"userId":"ID"}`,
		"key-lease":               `{"key":"k","bodyHash":"` + strings.Repeat("aB", 32) + `","claimId":"ID","leaseMs":100}`,
		"key-lease-change":        `{}`,
		"check-out-report":        `{"checkOuts":[{"id":"ID","outcome":"lent"}]}`,
		"past-check-out":          `{"id":"ID","outcome":"lent"}`,
		"forced-release":          `{"reason":"why"}`,
		"lock-settings-change":    `{"value":{}}`,
		"lock-environment":        `{"enabled":false}`,
		"check-out":               `{"loan":` + loan + `,"itemVersion":1}`,
		"check-out-subjects":      `{}`,
		"check-in":                `{"itemId":"ID","servicePointId":"ID","checkInDate":"2026-08-22T10:11:12Z","itemVersion":1,"itemStatus":"Available"}`,
		"queue-order":             `{"reorderedQueue":[{"id":"ID","newPosition":1}]}`,
		"reordered-queue":         `{"reorderedQueue":[{"id":"ID","newPosition":1}]}`,
		"request-move":            `{"itemVersion":1,"request":{"id":"ID","instanceId":"ID","requesterId":"ID","requestType":"Hold","requestLevel":"Item","requestDate":"2026-08-22T10:11:12Z","fulfillmentPreference":"Delivery","status":"Open - Not yet filled"}}`,
		"request-change":          `{"request":{"id":"ID","instanceId":"ID","requesterId":"ID","requestType":"Hold","requestLevel":"Item","requestDate":"2026-08-22T10:11:12Z","fulfillmentPreference":"Delivery","status":"Open - Not yet filled"}}`,
		"loan-replacement":        `{"id":"ID","loan":` + loan + `}`,
		"loan-change":             `{"id":"ID","action":"staffInfoAdded"}`,
		"placement":               `{"request":{"id":"ID","instanceId":"ID","requesterId":"ID","requestType":"Hold","requestLevel":"Item","requestDate":"2026-08-22T10:11:12Z","fulfillmentPreference":"Delivery","status":"Open - Not yet filled"}}`,
		"renewal":                 `{"loanId":"ID","itemId":"ID","itemVersion":1,"judgedRenewalCount":0,"dueDate":"2026-08-22T10:11:12Z","loanPolicyId":"ID"}`,
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
		"holdings-record": "instanceId permanentLocationId", "item": "materialTypeId permanentLoanTypeId holdingsRecordId status",
		"loan-policy": "name loanable renewable", "loan": "itemId loanDate action", "settings-entry": "scope key value",
		"circulation-rules": "rulesAsText", "checkout-lock-request": "userId", "check-out": "loan itemVersion",
		"request":       "instanceId requesterId requestType requestLevel requestDate fulfillmentPreference status",
		"request-batch": "requests", "proxyfor": "", "manualblock": "desc userId", "automated-patron-blocks": "automatedPatronBlocks",
		"patron-block-condition": "name", "patron-block-limit": "patronGroupId conditionId",
		"patron-notice-policy": "name", "staff-slip": "name template", "cancellation-reason": "name",
		"request-preference": "userId holdShelf delivery", "addresstype": "addressType",
		"circulation-setting": "name value", "locinstitution": "name", "loccampus": "name institutionId", "loclibrary": "name campusId",
		"fixed-due-date-schedule": "name", "request-policy": "name",
		"patron-action-session": "patronId loanId actionType",
		"check-in":              "itemId servicePointId checkInDate itemVersion itemStatus", "user": "",
		"loan-change": "id action", "loan-replacement": "id loan", "placement": "request", "request-change": "request", "request-move": "request itemVersion", "queue-order": "reorderedQueue", "reordered-queue": "reorderedQueue", "key-lease": "key bodyHash claimId leaseMs", "check-out-report": "checkOuts",
		"past-check-out": "id outcome", "forced-release": "reason", "lock-settings-change": "value", "lock-environment": "enabled",
		"renewal": "loanId itemId itemVersion judgedRenewalCount dueDate loanPolicyId",
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

func TestValidate_DescribesAViolation(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("ü", n) }
	tests := []struct {
		schema, member   string
		code, key, value string // code "" for accepted
		says             string
	}{
		{"user", `"barcode":12`, "type", "barcode", "12", "barcode must be of type string, not number"},
		{"user", `"active":"true"`, "type", "active", "true", "active must be of type boolean, not string"},
		{"user", `"barcode":"` + long(600) + `"`, "", "", "", ""},
		{"user", `"barcode":"` + long(601) + `"`, "maxLength", "barcode", long(100) + "…", "barcode must have at most 600 characters, not 601"},
		{"user", `"patronGroup":"staff"`, "format", "patronGroup", "staff", "patronGroup must be a UUID, such as " + someID},
		{"user", `"patronGroup":"{` + someID + `}"`, "format", "patronGroup", "{" + someID + "}", "must be a UUID"},
		{"user", `"patronGroup":"` + strings.ToUpper(someID) + `"`, "", "", "", ""},
		{"user", `"expirationDate":"2020-11-03"`, "", "", "", ""},
		{"user", `"expirationDate":"soon"`, "format", "expirationDate", "soon", "expirationDate must be a date and time as in RFC 3339"},
		{"user", `"personal":{"firstName":"Ann"}`, "required", "personal.lastName", "", "personal.lastName is required"},
		{"user", `"personal":{"lastName":"A","addresses":[{},{"addressTypeId":7}]}`, "type", "personal.addresses[1].addressTypeId", "7", "string"},
		{"user", `"departments":[null]`, "type", "departments[0]", "null", "departments[0] must be of type string, not null"},
		{"user", `"id":""`, "format", "id", "", "id must be a UUID"},
		{"item", `"status":{"name":"available"}`, "enum", "status.name", "available", "must be one of: Aged to lost, Available, Awaiting"},
		{"item", `"status":"Available"`, "type", "status", "Available", "status must be of type object, not string"},
		{"item", `"status":{"name":null}`, "required", "status.name", "", "status.name is required"},
		{"item", `"_version":-1`, "minimum", "_version", "-1", "_version must be at least 0"},
		{"item", `"_version":99999999999999999999`, "maximum", "_version", "99999999999999999999", "_version must be at most 2147483647"},
		{"item", `"_version":1.5`, "type", "_version", "1.5", "_version must be of type integer"},
		{"item", `"circulationNotes":[{"noteType":"Renew"}]`, "enum", "circulationNotes[0].noteType", "Renew", "Check in, Check out"},
		{"item", `"tags":{"tagList":"new"}`, "type", "tags.tagList", "new", "array"},
		{"instance", `"publication":[{"dateOfPublication":1994}]`, "type", "publication[0].dateOfPublication", "1994", "string"},
		{"loan", `"status":{"name":"open"}`, "enum", "status.name", "open", "status.name must be one of: Open, Closed"},
		{"loan", `"dueDate":20260822`, "type", "dueDate", "20260822", "string"},
		{"loan", `"loanDate":"yesterday"`, "", "", "", ""}, // 400 by a rule of the records
		{"loan", `"forUseAtLocation":{"status":"Lost"}`, "enum", "forUseAtLocation.status", "Lost", "In use, Held, Returned"},
		{"loan-policy", `"loansPolicy":{"itemLimit":0}`, "minimum", "loansPolicy.itemLimit", "0", "loansPolicy.itemLimit must be at least 1"},
		{"loan-policy", `"loansPolicy":{"itemLimit":10000}`, "maximum", "loansPolicy.itemLimit", "10000", "must be at most 9999"},
		{"loan-policy", `"loansPolicy":{"profileId":"rolling"}`, "enum", "loansPolicy.profileId", "rolling", "Rolling, Fixed"},
		{"loan-policy", `"loansPolicy":{"period":{"duration":3}}`, "required", "loansPolicy.period.intervalId", "", "required"},
		{"loan-policy", `"loansPolicy":{"period":{"duration":1,"intervalId":"Years"}}`, "enum", "loansPolicy.period.intervalId", "Years", "Months"},
		{"settings-entry", `"key":""`, "minLength", "key", "", "key must have 1 or more characters"},
		{"settings-entry", `"scope":"` + long(301) + `"`, "maxLength", "scope", long(100) + "…", "300"},
		{"settings-entry", `"value":[1]`, "", "", "", ""},
		{"settings-entry", `"value":null`, "required", "value", "", "value is required"},
		{"checkout-lock-request", `"ttlMs":600001`, "maximum", "ttlMs", "600001", "ttlMs must be at most 600000"},
		{"checkout-lock-request", `"ttlMs":600000,"waitMs":10000`, "", "", "", ""},
		{"checkout-lock-request", `"waitMs":10001`, "maximum", "waitMs", "10001", "waitMs must be at most 10000"},
		{"checkout-lock-request", `"requestId":"1"`, "format", "requestId", "1", "UUID"},
		{"check-out", `"loan":{"id":"` + someID + `"}`, "required", "loan.userId", "", "required"},
		{"check-in", `"loanAction":"renewed"`, "enum", "loanAction", "renewed", "checkedin"},
	}
	for i, tc := range tests {
		t.Run(fmt.Sprintf("%d %s %.30s", i, tc.schema, tc.member), func(t *testing.T) {
			t.Parallel()
			err := jsonschema.Validate(tc.schema, []byte(with(tc.schema, tc.member)))
			if tc.code == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("got %v, want an invalid document", err)
			}
			for _, d := range detailsOf(err) {
				if d.Parameters[0].Key != tc.key {
					continue
				}
				value := ""
				if d.Parameters[0].Value != nil {
					value = *d.Parameters[0].Value
				}
				if d.Code != tc.code || value != tc.value || d.Type != "1" || !strings.Contains(d.Message, tc.says) {
					t.Errorf("got %+v with value %q, want code %s, value %q, %q", d, value, tc.code, tc.value, tc.says)
				}
				return
			}
			t.Errorf("got %+v, want one about %s", detailsOf(err), tc.key)
		})
	}
}

func TestValidate_ReportsAllViolations(t *testing.T) {
	t.Parallel()
	err := jsonschema.Validate("item", []byte(`{"barcode":1,"status":{},"materialTypeId":"x"}`))
	if got := len(detailsOf(err)); got != 5 { // two missing, barcode, status.name, materialTypeId
		t.Errorf("got %d details, want 5: %+v", got, detailsOf(err))
	}
	for _, notAnObject := range []string{`[]`, `"x"`, `null`, `1`} {
		details := detailsOf(jsonschema.Validate("user", []byte(notAnObject)))
		if len(details) != 1 || details[0].Parameters[0].Key != "$" {
			t.Errorf("%s: got %+v, want one about the whole document", notAnObject, details)
		}
	}
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

func TestValidate_ShortensRefusedValues(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		value any
		want  string
	}{
		{"as it is", "as it is"},
		{"a\xff\xfeb", "a\uFFFDb"},
		{[]any{1, "x"}, `[1,"x"]`},
		{strings.Repeat("ä", 5000), strings.Repeat("ä", 100) + "…"},
	} {
		if got := fault.Shown(tt.value); got != tt.want {
			t.Errorf("got %.200q, want %.200q", got, tt.want)
		}
	}
}
