package events

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"checkoutlock/schemas"
	"checkoutlock/schemas/jsonschema"
)

// The types of events that are treated in ways of their own.
const (
	itemCheckedOut     = "ITEM_CHECKED_OUT"
	itemCheckedIn      = "ITEM_CHECKED_IN"
	loanDueDateChanged = "LOAN_DUE_DATE_CHANGED"
	logRecord          = "LOG_RECORD" // for FOLIO's circulation log (mod-audit)
)

// document is a JSON object.
type document = map[string]any

// loanActions are the entries of the log for actions of a loan (mod-circulation,
// LogContextActionResolver).
var loanActions = map[string]string{
	"renewed": "Renewed", "renewedThroughOverride": "Renewed through override", "recallrequested": "Recall requested",
	"claimedReturned": "Claimed returned", "declaredLost": "Declared lost", "markedMissing": "Marked as missing",
	"patronInfoAdded": "Patron info added", "staffInfoAdded": "Staff info added", "anonymized": "Anonymize",
}

// logRecords returns the payloads of an event for the circulation log.
func logRecords(e Event, payload document) []document {
	maps.Copy(payload, e.Names)
	payload["date"] = e.Date.UTC().Format(schemas.FolioTime)
	writeTimes(payload)
	kind, _ := payload["logEventType"].(string)
	action, _ := payload["action"].(string)
	switch {
	case e.Type == itemCheckedOut:
		record := document{"logEventType": "CHECK_OUT_EVENT", "isLoanClosed": false, "itemStatusName": "Checked out", "payload": payload}
		if action == "checkedOutThroughOverride" {
			record["logEventType"] = "CHECK_OUT_THROUGH_OVERRIDE_EVENT"
		}
		maps.Copy(record, payload)
		return []document{record}
	case e.Type == itemCheckedIn:
		payload["logEventType"], payload["isLoanClosed"] = "CHECK_IN_EVENT", payload["loanId"] != nil
		return []document{payload}
	case e.Type == loanDueDateChanged:
		changed := fmt.Sprintf("New due date: %v (from %v)", payload["dueDate"], cmp.Or(payload["previousDueDate"], "none"))
		records := []document{newLoanRecord(payload, "Changed due date", changed)}
		if name := loanActions[action]; name != "" {
			records = append(records, newLoanRecord(payload, name, changed))
		}
		return records
	case e.Type == logRecord && kind == "LOAN" && payload["outcome"] != nil:
		return []document{newLoanRecord(payload, "Check out", describeRefusal(payload))}
	case e.Type == logRecord && kind != "LOAN":
		return []document{{"logEventType": kind, "payload": payload}}
	case loanActions[action] == "":
		return nil // of a build before, which did not name it
	}
	comment, _ := payload["actionComment"].(string)
	if e.Type != logRecord {
		comment = "Additional information: " + comment
	}
	return []document{newLoanRecord(payload, loanActions[action], comment)}
}

func newLoanRecord(payload document, action, description string) document {
	payload = maps.Clone(payload)
	payload["action"], payload["description"] = action, description
	return document{"logEventType": "LOAN", "payload": payload}
}

// describeRefusal says why nothing was lent. The reason of a reached limit is FOLIO's own text.
func describeRefusal(payload document) string {
	if payload["outcome"] == schemas.OutcomeLimitReached {
		return fmt.Sprintf("Not checked out: %s.", payload["reason"])
	}
	if payload["reason"] != "unable to acquire lock" { // it was lost
		return fmt.Sprintf("Not checked out: %s. Check the item out again.", payload["reason"])
	}
	waited, _ := payload["waitMs"].(float64)
	return fmt.Sprintf("Not checked out: another check-out of this patron was still under way after %.1f seconds of waiting. "+
		"Check the item out again.", waited/1000)
}

// writeTimes writes all dates as mod-audit reads them: in UTC, with milliseconds.
func writeTimes(in any) {
	switch in := in.(type) {
	case document:
		for key, value := range in {
			text, _ := value.(string)
			if at, err := jsonschema.ParseTime(text); err == nil && strings.HasSuffix(key, "Date") {
				in[key] = at.UTC().Format(schemas.FolioTime)
			}
			writeTimes(value)
		}
	case []any:
		for _, value := range in {
			writeTimes(value)
		}
	}
}
