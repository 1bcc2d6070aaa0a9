package jsonschema_test

import (
	"fmt"
	"strings"
	"testing"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

func TestValidate_DescribesAViolation(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("ü", n) }
	tests := []struct {
		schema, member   string
		code, key, value string // code "" for accepted
		says             string
	}{
		{
			schema: "user", member: `"barcode":12`, code: "type", key: "barcode", value: "12",
			says: "barcode must be of type string, not number",
		},
		{
			schema: "user", member: `"active":"true"`, code: "type", key: "active", value: "true",
			says: "active must be of type boolean, not string",
		},
		{schema: "user", member: `"barcode":"` + long(600) + `"`, code: "", key: "", value: "", says: ""},
		{
			schema: "user", member: `"barcode":"` + long(601) + `"`, code: "maxLength", key: "barcode", value: long(100) + "…",
			says: "barcode must have at most 600 characters, not 601",
		},
		{
			schema: "user", member: `"patronGroup":"staff"`, code: "format", key: "patronGroup", value: "staff",
			says: "patronGroup must be a UUID, such as " + someID,
		},
		{
			schema: "user", member: `"patronGroup":"{` + someID + `}"`, code: "format", key: "patronGroup",
			value: "{" + someID + "}", says: "must be a UUID",
		},
		{schema: "user", member: `"patronGroup":"` + strings.ToUpper(someID) + `"`, code: "", key: "", value: "", says: ""},
		{schema: "user", member: `"expirationDate":"2020-11-03"`, code: "", key: "", value: "", says: ""},
		{
			schema: "user", member: `"expirationDate":"soon"`, code: "format", key: "expirationDate", value: "soon",
			says: "expirationDate must be a date and time as in RFC 3339",
		},
		{
			schema: "user", member: `"personal":{"firstName":"Ann"}`, code: "required", key: "personal.lastName", value: "",
			says: "personal.lastName is required",
		},
		{
			schema: "user", member: `"personal":{"lastName":"A","addresses":[{},{"addressTypeId":7}]}`, code: "type",
			key: "personal.addresses[1].addressTypeId", value: "7", says: "string",
		},
		{
			schema: "user", member: `"departments":[null]`, code: "type", key: "departments[0]", value: "null",
			says: "departments[0] must be of type string, not null",
		},
		{schema: "user", member: `"id":""`, code: "format", key: "id", value: "", says: "id must be a UUID"},
		{
			schema: "request", member: `"requester":{"patronGroup":{"group":"staff"}}`, code: "type",
			key: "requester.patronGroup", value: `{"group":"staff"}`,
			says: "requester.patronGroup must be of type string, not object",
		},
		// Circulation reads these of each item that it lends.
		{
			schema: "instance", member: `"series":["Harvard economic studies"]`, code: "type", key: "series[0]",
			value: "Harvard economic studies", says: "series[0] must be of type object, not string",
		},
		{
			schema: "instance", member: `"series":[{"value":7}]`, code: "type", key: "series[0].value", value: "7",
			says: "series[0].value must be of type string, not number",
		},
		{
			schema: "instance", member: `"identifiers":[{"value":9780674}]`, code: "type", key: "identifiers[0].value",
			value: "9780674", says: "identifiers[0].value must be of type string, not number",
		},
		{
			schema: "instance", member: `"identifiers":[{"identifierTypeId":"ISBN"}]`, code: "format",
			key: "identifiers[0].identifierTypeId", value: "ISBN", says: "identifiers[0].identifierTypeId must be a UUID",
		},
		{
			schema: "item", member: `"status":{"name":"available"}`, code: "enum", key: "status.name", value: "available",
			says: "must be one of: Aged to lost, Available, Awaiting",
		},
		{
			schema: "item", member: `"status":"Available"`, code: "type", key: "status", value: "Available",
			says: "status must be of type object, not string",
		},
		{
			schema: "item", member: `"status":{"name":null}`, code: "required", key: "status.name", value: "",
			says: "status.name is required",
		},
		{
			schema: "item", member: `"_version":-1`, code: "minimum", key: "_version", value: "-1",
			says: "_version must be at least 0",
		},
		{
			schema: "item", member: `"_version":99999999999999999999`, code: "maximum", key: "_version",
			value: "99999999999999999999", says: "_version must be at most 2147483647",
		},
		{
			schema: "item", member: `"_version":1.5`, code: "type", key: "_version", value: "1.5",
			says: "_version must be of type integer",
		},
		{
			schema: "item", member: `"circulationNotes":[{"noteType":"Renew"}]`, code: "enum",
			key: "circulationNotes[0].noteType", value: "Renew", says: "Check in, Check out",
		},
		{schema: "item", member: `"tags":{"tagList":"new"}`, code: "type", key: "tags.tagList", value: "new", says: "array"},
		{
			schema: "instance", member: `"publication":[{"dateOfPublication":1994}]`, code: "type",
			key: "publication[0].dateOfPublication", value: "1994", says: "string",
		},
		{
			schema: "loan", member: `"status":{"name":"open"}`, code: "enum", key: "status.name", value: "open",
			says: "status.name must be one of: Open, Closed",
		},
		{schema: "loan", member: `"dueDate":20260822`, code: "type", key: "dueDate", value: "20260822", says: "string"},
		// 400 by a rule of the records
		{schema: "loan", member: `"loanDate":"yesterday"`, code: "", key: "", value: "", says: ""},
		{
			schema: "loan", member: `"forUseAtLocation":{"status":"Lost"}`, code: "enum", key: "forUseAtLocation.status",
			value: "Lost", says: "In use, Held, Returned",
		},
		{
			schema: "loan-policy", member: `"loansPolicy":{"itemLimit":0}`, code: "minimum", key: "loansPolicy.itemLimit",
			value: "0", says: "loansPolicy.itemLimit must be at least 1",
		},
		{
			schema: "loan-policy", member: `"loansPolicy":{"itemLimit":10000}`, code: "maximum", key: "loansPolicy.itemLimit",
			value: "10000", says: "must be at most 9999",
		},
		{
			schema: "loan-policy", member: `"loansPolicy":{"profileId":"rolling"}`, code: "enum", key: "loansPolicy.profileId",
			value: "rolling", says: "Rolling, Fixed",
		},
		{
			schema: "loan-policy", member: `"loansPolicy":{"period":{"duration":3}}`, code: "required",
			key: "loansPolicy.period.intervalId", value: "", says: "required",
		},
		{
			schema: "loan-policy", member: `"loansPolicy":{"period":{"duration":1,"intervalId":"Years"}}`, code: "enum",
			key: "loansPolicy.period.intervalId", value: "Years", says: "Months",
		},
		{
			schema: "settings-entry", member: `"key":""`, code: "minLength", key: "key", value: "",
			says: "key must have 1 or more characters",
		},
		{
			schema: "settings-entry", member: `"scope":"` + long(301) + `"`, code: "maxLength", key: "scope",
			value: long(100) + "…", says: "300",
		},
		{schema: "settings-entry", member: `"value":[1]`, code: "", key: "", value: "", says: ""},
		{
			schema: "settings-entry", member: `"value":null`, code: "required", key: "value", value: "",
			says: "value is required",
		},
		{
			schema: "checkout-lock-request", member: `"ttlMs":600001`, code: "maximum", key: "ttlMs", value: "600001",
			says: "ttlMs must be at most 600000",
		},
		{schema: "checkout-lock-request", member: `"ttlMs":600000,"waitMs":10000`, code: "", key: "", value: "", says: ""},
		{
			schema: "checkout-lock-request", member: `"waitMs":10001`, code: "maximum", key: "waitMs", value: "10001",
			says: "waitMs must be at most 10000",
		},
		{
			schema: "checkout-lock-request", member: `"requestId":"1"`, code: "format", key: "requestId", value: "1",
			says: "UUID",
		},
		{
			schema: "check-out", member: `"loan":{"id":"` + someID + `"}`, code: "required", key: "loan.userId", value: "",
			says: "required",
		},
		{
			schema: "check-in", member: `"loanAction":"renewed"`, code: "enum", key: "loanAction", value: "renewed",
			says: "checkedin",
		},
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
