package storageclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"checkoutlock/schemas/fault"
)

// maxQuoted is how much of an error answer goes into the log or to the client.
const maxQuoted = 1000

// lostAnswer is the error of a call whose answer did not come whole. ctx is the
// caller's context, without the call's own time-out. The URL is left out, since
// its query may name a patron.
func lostAnswer(ctx context.Context, r request, err error) error {
	if inner := (*url.Error)(nil); errors.As(err, &inner) {
		err = inner.Err
	}
	err = fmt.Errorf("%s %s: %w", r.method, r.route, err)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s %s: %w", r.method, r.route, ctx.Err())
	case errors.Is(err, errTooLong):
		return fault.Wrap(err, fault.Invalid, "The answer would be too large: ask for less, with limit and offset")
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(err, fault.Timeout, "Storage did not answer in time")
	}
	return fault.Wrap(err, fault.Unavailable, "Storage was not reached")
}

// answerFault is the fault that storage answered. What the client is shown of it:
// FOLIO's list of errors, and the text of a request that storage could not read
// (bad CQL) or of a tenant that it does not serve, which it writes for clients. All
// else is for the log.
//
// A 404 says that there is no such record only when the path names one and the
// answer carries storage's header. Any other comes from something in between or
// from a storage of another version, and nobody may conclude from it that a
// loan, a lock or a patron is not there.
func answerFault(r request, status int, header http.Header, body []byte) error {
	named := header.Get(fault.Header)
	code := fault.CodeFromAnswer(status, named)
	if code == fault.NotFound && (!r.record || named == "") {
		code = fault.Unavailable
	}
	var list struct {
		Errors []fault.Detail `json:"errors"`
	}
	if json.Unmarshal(body, &list) != nil {
		list.Errors = nil
	}
	quoted := quote(status, body, list.Errors)
	f := &fault.Error{
		Code:       code,
		Msg:        publicMessage(code),
		RetryAfter: retryAfter(header),
		Err:        fmt.Errorf("%s %s: storage answered %d %s: %s", r.method, r.route, status, named, quoted),
	}
	if code == fault.Unavailable && named == string(code) {
		f.Msg = "Storage is not available right now" // it answered, so it was reached
	}
	if status >= http.StatusInternalServerError && code != fault.TenantNotReady {
		return f
	}
	switch {
	case len(list.Errors) > 0:
		f.Details, f.Msg = list.Errors, list.Errors[0].Message
	case named == string(code) && quoted != "" && isForClients(code):
		f.Msg = quoted
	}
	return f
}

// isForClients reports whether storage writes the text of such an answer for
// clients.
func isForClients(code fault.Code) bool {
	return code == fault.Malformed || code == fault.UnknownTenant || code == fault.TenantNotReady
}

// quote is what an error repeats of an answer: its text, or the messages of FOLIO's
// list of errors. Neither their parameters nor records are in it, since those name
// patrons.
func quote(status int, body []byte, list []fault.Detail) string {
	switch {
	case status < http.StatusBadRequest:
		return "a status that was not expected"
	case len(list) > 0:
		messages := make([]string, len(list))
		for i, d := range list {
			messages[i] = d.Message
		}
		body = []byte(strings.Join(messages, "; "))
	}
	if len(body) > maxQuoted {
		body = body[:maxQuoted]
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(body), ""))
}

// publicMessage says for the client what became of a call to storage.
func publicMessage(code fault.Code) string {
	switch code {
	case fault.NotFound:
		return "Not found"
	case fault.Conflict:
		return "It was changed by somebody else meanwhile"
	case fault.LockHeld, fault.LockQueueFull:
		return "Another check-out of the same patron is under way"
	case fault.LockLost:
		return "The patron's lock was lost"
	case fault.SettingsChanged:
		return "The check-out lock's settings were changed meanwhile"
	case fault.LoanChanged:
		return "The loan was changed meanwhile"
	case fault.ItemChanged:
		return "The item was changed meanwhile"
	case fault.RequestChanged:
		return "The queue of requests was changed meanwhile"
	case fault.ClaimLost:
		return "Another request with the same Idempotency-Key has taken the check-out over"
	case fault.RequestRunning:
		return "Another request with the same Idempotency-Key is still running"
	case fault.KeyReused:
		return "This Idempotency-Key was used for a request with another body"
	case fault.UnknownTenant:
		return "Unknown tenant"
	case fault.TenantNotReady:
		return "The tenant's database schema is not ready"
	case fault.Unavailable:
		return "Storage was not reached"
	case fault.Timeout:
		return "Storage did not answer in time"
	case fault.Forbidden:
		return "Storage refused access"
	case fault.Malformed, fault.Invalid, fault.TooLarge:
		return "Storage refused the request"
	default:
		return "Storage failed"
	}
}

// retryAfter reads the header's seconds; 0 is unknown.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.ParseUint(header.Get("Retry-After"), 10, 16)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
