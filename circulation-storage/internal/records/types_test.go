package records_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/migrations"
	"checkoutlock/schemas/jsonschema"
)

// schemaFields returns the paths, with dots, of the properties that a JSON Schema
// names, or the file that it refers to.
func schemaFields(t *testing.T, name string) map[string]bool {
	t.Helper()
	raw, err := os.ReadFile("../../../schemas/jsonschema/json/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	type node struct {
		Ref        string                     `json:"$ref"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	paths := map[string]bool{}
	var root node
	if err := json.Unmarshal(raw, &root); err != nil {
		t.Fatal(err)
	}
	if root.Ref != "" {
		paths = schemaFields(t, strings.TrimSuffix(root.Ref, ".json"))
	}
	var walk func(prefix string, raw json.RawMessage)
	walk = func(prefix string, raw json.RawMessage) {
		var n node
		if json.Unmarshal(raw, &n) != nil {
			return // true, which allows anything
		}
		for property, below := range n.Properties {
			paths[prefix+property] = true
			walk(prefix+property+".", below)
		}
	}
	walk("", raw)
	return paths
}

func TestTypes_NameExistingSchemasAndConstraints(t *testing.T) {
	t.Parallel()
	var sql strings.Builder
	files, err := fs.Glob(migrations.SQL, "sql/*.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := fs.ReadFile(migrations.SQL, file)
		if err != nil {
			t.Fatal(err)
		}
		sql.Write(raw)
	}
	words := map[string]bool{}
	for _, word := range strings.FieldsFunc(sql.String(),
		func(r rune) bool { return strings.ContainsRune(" \n(),;'", r) }) {
		words[word] = true
	}
	known := strings.Join(jsonschema.Names(), " ") + " "

	seen, explained := map[string]bool{}, map[string]bool{}
	for _, typ := range records.Types() {
		if !strings.Contains(known, typ.Schema+" ") {
			t.Errorf("%s: there is no schema %s", typ.Name, typ.Schema)
			continue
		}
		fields := schemaFields(t, typ.Schema)
		field := func(what, path string) {
			shared := strings.HasPrefix(path, "metadata.") || strings.HasPrefix(path, "effectiveCallNumberComponents.") ||
				path == "tags.tagList"
			if !fields[path] && !shared {
				t.Errorf("%s: %s %s is not in the schema", typ.Name, what, path)
			}
		}
		database := func(what, name string) {
			explained[name] = true
			if !words[name] {
				t.Errorf("%s: no migration makes the %s %s", typ.Name, what, name)
			}
		}
		database("table", typ.Table)
		for name, index := range typ.Indexes {
			if len(index.Parts) == 0 && index.Of == "" {
				field("index", strings.TrimSuffix(name, ".*"))
			}
			for _, part := range index.Parts {
				path, _, _ := strings.Cut(strings.TrimPrefix(part, "$."), "[")
				field("part of the index "+name, strings.TrimSuffix(path, ".*"))
			}
			if index.Column != "" {
				database("column", index.Column)
			}
		}
		for _, u := range typ.Unique {
			database("constraint", u.Constraint)
			for _, path := range u.Fields {
				field("unique field", path)
			}
		}
		for _, ref := range typ.References {
			database("constraint", ref.Constraint)
			field("reference", ref.Field)
			if ref.Links != "" {
				database("table", ref.Links)
			} else if typ.Indexes[ref.Field].Column == "" {
				t.Errorf("%s: the reference %s has no index", typ.Name, ref.Field)
			}
			if !seen[ref.To] {
				t.Errorf("%s comes before %s, which it refers to", typ.Name, ref.To)
			}
		}
		seen[typ.Table] = true
		if strings.Contains(typ.Permission, " ") || typ.Collection == "" || !strings.HasPrefix(typ.Path, "/") {
			t.Errorf("%s: %+v", typ.Name, typ)
		}
	}
	const elsewhere = "check_out_lock_user_id_key check_out_request_claim_id_key patron_pin_user_id_fkey"
	for name := range words {
		isConstraint := strings.HasSuffix(name, "_key") || strings.HasSuffix(name, "_fkey")
		_, _, known := records.FindReference(name)
		known = known || explained[name] || strings.Contains(elsewhere, name) || strings.HasSuffix(name, "_source_id_fkey")
		if isConstraint && !known {
			t.Errorf("no record type explains the constraint %s", name)
		}
	}
}

// FOLIO's names, as its clients use them.
func TestTypes_HavePathsAndCollectionKeysOfFOLIO(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"/users": "users", "/groups": "usergroups", "/item-storage/items": "items",
		"/holdings-storage/holdings":  "holdingsRecords",
		"/instance-storage/instances": "instances", "/locations": "locations", "/material-types": "mtypes",
		"/loan-types":     "loantypes",
		"/service-points": "servicepoints", "/loan-policy-storage/loan-policies": "loanPolicies",
		"/loan-storage/loans": "loans",
		"/settings/entries":   "items",
		"/proxiesfor":         "proxiesFor", "/manualblocks": "manualblocks",
		"/circulation-settings-storage/circulation-settings": "circulationSettings",
		"/patron-block-conditions":                           "patronBlockConditions",
		"/patron-block-limits":                               "patronBlockLimits",
		"/location-units/institutions":                       "locinsts", "/location-units/campuses": "loccamps",
		"/location-units/libraries":                                 "loclibs",
		"/fixed-due-date-schedule-storage/fixed-due-date-schedules": "fixedDueDateSchedules",
		"/patron-notice-policy-storage/patron-notice-policies":      "patronNoticePolicies",
		"/overdue-fines-policies":                                   "overdueFinePolicies",
		"/lost-item-fees-policies":                                  "lostItemFeePolicies",
		"/staff-slips-storage/staff-slips":                          "staffSlips",
		"/cancellation-reason-storage/cancellation-reasons":         "cancellationReasons",
		"/request-preference-storage/request-preference":            "requestPreferences",
		"/addresstypes": "addressTypes",
		"/request-policy-storage/request-policies": "requestPolicies", "/request-storage/requests": "requests",
		"/patron-action-session-storage/patron-action-sessions":   "patronActionSessions",
		"/check-in-storage/check-ins":                             "checkIns",
		"/scheduled-notice-storage/scheduled-notices":             "scheduledNotices",
		"/actual-cost-record-storage/actual-cost-records":         "actualCostRecords",
		"/tlr-feature-toggle-job-storage/tlr-feature-toggle-jobs": "tlrFeatureToggleJobs",
		"/self-check-terminals":                                   "selfCheckTerminals",
	}
	got := records.Types()
	if len(got) != len(want) {
		t.Errorf("got %d types, want %d", len(got), len(want))
	}
	for _, typ := range got {
		if want[typ.Path] != typ.Collection {
			t.Errorf("%s lists %q, want %q", typ.Path, typ.Collection, want[typ.Path])
		}
	}
}

// What mod-circulation and edge-sip2 ask for.
func TestTypes_HaveIndexesOfFOLIOsClients(t *testing.T) {
	t.Parallel()
	used := map[string]string{
		"/users": "id keywords barcode username externalSystemId active patronGroup " +
			"personal.lastName personal.firstName expirationDate",
		"/groups": "id group",
		"/item-storage/items": "id barcode hrid holdingsRecordId status.name effectiveLocationId " +
			"materialTypeId",
		"/holdings-storage/holdings":         "id instanceId hrid permanentLocationId",
		"/instance-storage/instances":        "id hrid title",
		"/locations":                         "id code name primaryServicePoint institutionId",
		"/material-types":                    "id name",
		"/loan-types":                        "id name",
		"/service-points":                    "id code name pickupLocation",
		"/loan-policy-storage/loan-policies": "id name",
		"/loan-storage/loans": "id userId proxyUserId itemId status status.name loanDate dueDate returnDate " +
			"action itemStatus loanPolicyId checkoutServicePointId",
		"/settings/entries":        "id scope key userId",
		"/proxiesfor":              "id userId proxyUserId status expirationDate",
		"/manualblocks":            "id userId borrowing expirationDate",
		"/patron-block-conditions": "id name",
		"/patron-block-limits":     "id patronGroupId conditionId",
		"/circulation-settings-storage/circulation-settings":        "id name",
		"/location-units/campuses":                                  "id name code institutionId",
		"/location-units/libraries":                                 "id name code campusId",
		"/fixed-due-date-schedule-storage/fixed-due-date-schedules": "id name",
		"/request-policy-storage/request-policies":                  "id name",
		"/patron-notice-policy-storage/patron-notice-policies": "id name active loanNotices requestNotices " +
			"feeFineNotices",
		"/overdue-fines-policies":                           "id name",
		"/lost-item-fees-policies":                          "id name",
		"/staff-slips-storage/staff-slips":                  "id name active",
		"/cancellation-reason-storage/cancellation-reasons": "id name",
		"/request-preference-storage/request-preference":    "id userId",
		"/addresstypes":                                     "id addressType",
		"/request-storage/requests": "id itemId instanceId requesterId proxyUserId status position requestType " +
			"requestLevel requestDate " +
			"pickupServicePointId holdShelfExpirationDate requestExpirationDate itemIsbn fullCallNumberIndex " +
			"searchIndex.shelvingOrder " +
			"searchIndex.pickupServicePointName searchIndex.callNumberComponents.callNumber ecsRequestPhase instance.title " +
			"item.barcode " +
			"requester.barcode requester.firstName requester.lastName requester.middleName proxy.barcode cancellationReasonId " +
			"tags.tagList",
		"/patron-action-session-storage/patron-action-sessions": "id patronId loanId actionType sessionId",
		"/check-in-storage/check-ins":                           "id itemId servicePointId occurredDateTime",
		"/scheduled-notice-storage/scheduled-notices": "id nextRunTime noticeConfig.sendInRealTime triggeringEvent " +
			"requestId loanId recipientUserId sessionId feeFineActionId noticeConfig.timing",
		"/actual-cost-record-storage/actual-cost-records": "id loan.id lossType lossDate instance.title " +
			"item.permanentLocation feeFine.type feeFine.owner status expirationDate user.firstName user.lastName " +
			"user.barcode item.barcode",
		"/tlr-feature-toggle-job-storage/tlr-feature-toggle-jobs": "id status",
	}
	for _, typ := range records.Types() {
		for name := range strings.FieldsSeq(used[typ.Path] + " metadata.createdDate metadata.updatedDate") {
			if _, ok := typ.Indexes[name]; !ok {
				t.Errorf("%s has no index %s", typ.Path, name)
			}
		}
	}
}
