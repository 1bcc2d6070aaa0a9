package storageclient

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"checkoutlock/schemas/fault"
)

// maxQuoted is how much of an error answer goes into the log or to the client.
const maxQuoted = 1000

// lostAnswer is the error of a call whose answer is missing or incomplete. caller is the
// caller's context, call the one with the call's own time-out. A dial has another time-out.
func lostAnswer(caller, call context.Context, r request, err error) error {
	err = fmt.Errorf("%s %s: %w", r.method, r.route, err)
	switch {
	case caller.Err() != nil:
		return fmt.Errorf("%s %s: %w", r.method, r.route, caller.Err())
	case errors.Is(err, errTooLong):
		return fault.Wrap(err, fault.Invalid, "The answer would be too large: ask for less, with limit and offset")
	case call.Err() != nil:
		return fault.Wrap(err, fault.Timeout, "Storage did not answer in time")
	}
	return fault.Wrap(err, fault.Unavailable, "Storage was not reached")
}

// answerFault is the fault that storage answered. Its message has what storage writes
// for clients: FOLIO's list of errors, and the text about a request that it could not
// read (bad CQL) or a tenant that it does not serve. The rest is for the log.
//
// A 404 means a missing record only if the path names one and the answer has
// storage's header. Any other 404 comes from a proxy or from a storage of another
// version: it does not prove that a loan, a lock or a patron is missing.
func answerFault(r request, answer received) error {
	status, header, body := answer.status, answer.header, answer.body
	named := header.Get(fault.Header)
	code := fault.CodeFromAnswer(status, named)
	if code == fault.NotFound && (!r.record || named == "") {
		code = fault.Unavailable
	}
	var list refusals
	if json.Unmarshal(body, &list) != nil {
		list.Errors = nil
	}
	quoted := quote(status, body, list.Errors)
	f := &fault.Error{
		Code:       code,
		Msg:        cmp.Or(publicMessages[code], "Storage failed"),
		RetryAfter: retryAfter(header),
		Unchanged:  header.Get(fault.UnchangedHeader) == "true",
		Err:        fmt.Errorf("%s %s: storage answered %d %s: %s", r.method, r.route, status, named, quoted),
	}
	if code == fault.Unavailable && named == string(code) {
		f.Msg = "Storage is not available right now" // it answered, so it was reached
	}
	if code == fault.Unavailable && f.Unchanged {
		f.Msg = quoted // what the database lacks
	}
	if status >= http.StatusInternalServerError && code != fault.TenantNotReady {
		return f
	}
	switch {
	case len(list.Errors) > 0:
		f.Details, f.Msg = list.Errors, list.Errors[0].Message
	case named == string(code) && quoted != "" && isForClients(code):
		f.Msg = quoted
	case status == http.StatusRequestHeaderFieldsTooLarge:
		f.Msg = "The address or the headers are too long for storage"
	}
	return f
}

// isForClients reports whether storage writes the text of such an answer for
// clients.
func isForClients(code fault.Code) bool {
	return code == fault.Malformed || code == fault.UnknownTenant || code == fault.TenantNotReady
}

// quote returns the part of an answer that an error repeats: its text, or the messages of
// FOLIO's list of errors. It leaves out parameters and records, since those name patrons.
func quote(status int, body []byte, list fault.List) string {
	switch {
	case status < http.StatusBadRequest:
		return "a status that was not expected"
	case len(list) > 0:
		body = []byte(list.Text())
	}
	if len(body) > maxQuoted {
		body = body[:maxQuoted]
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(body), ""))
}

// publicMessages are the texts about failed calls to storage that clients see.
var publicMessages = map[fault.Code]string{
	fault.NotFound:        "Not found",
	fault.Conflict:        "It was changed meanwhile",
	fault.LockHeld:        "Another check-out of the same patron is under way",
	fault.LockQueueFull:   "Another check-out of the same patron is under way",
	fault.LockLost:        "The patron's lock was lost",
	fault.SettingsChanged: "The check-out lock's settings were changed meanwhile",
	fault.LoanChanged:     "The loan was changed meanwhile",
	fault.ItemChanged:     "The item was changed meanwhile",
	fault.RequestChanged:  "The queue of requests was changed meanwhile",
	fault.LimitReached:    "The patron has as many loans as the limit allows",
	fault.KeyLeaseLost:    "Another request with the same Idempotency-Key has taken the check-out over",
	fault.GivenUp:         "The check-out was given up",
	fault.RequestRunning:  "Another request with the same Idempotency-Key is still running",
	fault.KeyReused:       "This Idempotency-Key was used for a request with another body",
	fault.LoginRefused:    "Login or password is wrong",
	fault.UnknownTenant:   "Unknown tenant",
	fault.TenantNotReady:  "The tenant's database schema is not ready",
	fault.Unavailable:     "Storage was not reached",
	fault.Timeout:         "Storage did not answer in time",
	fault.Forbidden:       "Storage refused access",
	fault.Malformed:       "Storage refused the request",
	fault.Invalid:         "Storage refused the request",
	fault.TooLarge:        "Storage refused the request",
}

// retryAfter reads the header's seconds; 0 means unknown.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.ParseUint(header.Get("Retry-After"), 10, 16)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
