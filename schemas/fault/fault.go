// Package fault classifies failures by codes that both services share. A fault gets
// its code where it arises and its HTTP status once, in package web. Everything between
// passes it on unchanged.
package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Code says what kind of failure happened. Codes travel in the header
// X-Fault-Code and in FOLIO's errors JSON, so they are part of the wire
// contract: add new ones, never rename or reuse one.
type Code string

// The closed list of codes. Status maps each of them; a test fails when one is
// forgotten.
const (
	// Internal is a bug or a fault of stored configuration; its cause is for
	// operators.
	Internal Code = "INTERNAL"
	// Malformed is a request that cannot be read at all: bad JSON, a bad id.
	Malformed Code = "MALFORMED"
	// Invalid is a readable request that breaks a rule and never succeeds as sent.
	Invalid Code = "INVALID"
	// MethodNotAllowed is a method that the path does not take.
	MethodNotAllowed Code = "METHOD_NOT_ALLOWED"
	// NotFound is a named thing that does not exist.
	NotFound Code = "NOT_FOUND"
	// Conflict is a write against a version that is no longer the stored one.
	Conflict Code = "VERSION_CONFLICT"
	// Unauthorized is a caller without valid credentials.
	Unauthorized Code = "UNAUTHORIZED"
	// Forbidden is a known caller without the permission.
	Forbidden Code = "FORBIDDEN"
	// TooManyTries is a caller who sent too many wrong passwords.
	TooManyTries Code = "TOO_MANY_TRIES"
	// TooLarge is a body above the limit.
	TooLarge Code = "BODY_TOO_LARGE"
	// Timeout is work that ran out of time in this service.
	Timeout Code = "TIMEOUT"
	// LockHeld is a patron's lock that another request holds, and nothing else.
	LockHeld Code = "LOCK_HELD"
	// LockQueueFull is a lock that too many callers wait for already.
	LockQueueFull Code = "LOCK_QUEUE_FULL"
	// LockLost is a commit whose lock was released or taken over meanwhile.
	LockLost Code = "LOCK_LOST"
	// SettingsChanged is a commit without a lock that acted on old settings.
	SettingsChanged Code = "SETTINGS_CHANGED"
	// ItemChanged is a commit that acted on an old version of the item.
	ItemChanged Code = "ITEM_CHANGED"
	// RequestChanged is a commit or a new request that acted on an old state of
	// the item's queue of requests.
	RequestChanged Code = "REQUEST_CHANGED"
	// LimitReached is a commit under the patron's lock that would exceed the item limit.
	LimitReached Code = "LIMIT_REACHED"
	// LoanChanged is a renewal or a recall that judged another state of the loan.
	LoanChanged Code = "LOAN_CHANGED"
	// KeyLeaseLost is a commit or an answer of a check-out whose Idempotency-Key
	// another caller has leased meanwhile.
	KeyLeaseLost Code = "CLAIM_LOST"
	// GivenUp is a commit of a check-out that was settled as not lent.
	GivenUp Code = "CHECK_OUT_GIVEN_UP"
	// RequestRunning is a check-out that another request with the same
	// Idempotency-Key is still working on.
	RequestRunning Code = "REQUEST_RUNNING"
	// KeyReused is an Idempotency-Key that was used for another body.
	KeyReused Code = "IDEMPOTENCY_KEY_REUSED"
	// LoginRefused is a login with an unknown name, a wrong password or a wrong PIN.
	LoginRefused Code = "LOGIN_REFUSED"
	// LockNotAcquired is a check-out that did not get the patron's lock in time.
	LockNotAcquired Code = "LOCK_NOT_ACQUIRED"
	// OutcomeUnknown is a check-out that may or may not have happened.
	OutcomeUnknown Code = "CHECK_OUT_OUTCOME_UNKNOWN"
	// InUse is a record that a running commit uses. A repeat succeeds after that
	// commit, which takes a few seconds at most.
	InUse Code = "IN_USE"
	// Overloaded is work that was not begun, because this process would not finish
	// it in time.
	Overloaded Code = "OVERLOADED"
	// UnknownTenant is a tenant that is not installed.
	UnknownTenant Code = "UNKNOWN_TENANT"
	// TenantNotReady is a tenant whose schema lacks migrations of this build, or has
	// one that failed half-way.
	TenantNotReady Code = "TENANT_NOT_READY"
	// Unavailable is a service or a database that cannot be reached or cannot
	// write. An attempt to write may have succeeded although its answer was lost.
	Unavailable Code = "UNAVAILABLE"
)

// Codes returns every code, in the order of declaration.
func Codes() []Code {
	return []Code{
		Internal, Malformed, MethodNotAllowed, Invalid, NotFound, Conflict, Unauthorized, Forbidden, TooManyTries, TooLarge, Timeout,
		LockHeld, LockQueueFull, LockLost, SettingsChanged, ItemChanged, RequestChanged, LimitReached, LoanChanged,
		KeyLeaseLost, GivenUp, RequestRunning, KeyReused, LoginRefused,
		LockNotAcquired, OutcomeUnknown, InUse, Overloaded, UnknownTenant, TenantNotReady, Unavailable,
	}
}

// Error is a failure that callers distinguish by Code.
type Error struct {
	Code       Code
	Msg        string        // safe to show to the client
	Details    []Detail      // FOLIO's errors list; empty means a plain text answer
	RetryAfter time.Duration // earliest sensible retry; 0 means unknown
	// Unchanged means that the work changed nothing, although the code leaves that open.
	Unchanged bool
	Err       error // cause, for the log; never shown to the client
}

// Detail is one entry of FOLIO's errors JSON (error.schema).
type Detail struct {
	Message          string            `json:"message"`
	Type             string            `json:"type,omitempty"`
	Code             string            `json:"code,omitempty"`
	Parameters       []Parameter       `json:"parameters"`
	OverridableBlock *OverridableBlock `json:"overridableBlock,omitempty"`
}

// MarshalJSON implements json.Marshaler: a Detail without parameters has an empty list.
func (d Detail) MarshalJSON() ([]byte, error) {
	type plain Detail
	if d.Parameters == nil {
		d.Parameters = []Parameter{}
	}
	return json.Marshal(plain(d))
}

// Parameter names what a Detail is about. A nil Value is JSON null.
type Parameter struct {
	Key   string  `json:"key"`
	Value *string `json:"value"`
}

// OverridableBlock names the block that refuses a check-out and the permissions that
// override it (FOLIO's extended errors).
type OverridableBlock struct {
	Name               string   `json:"name"`
	MissingPermissions []string `json:"missingPermissions"`
}

// Param is a Parameter with a value.
func Param(key, value string) Parameter { return Parameter{Key: key, Value: &value} }

// New returns a fault that is answered as text.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Msg: fmt.Sprintf(format, args...)}
}

// Wrap returns a fault that is answered as text and keeps its cause for the log.
func Wrap(err error, code Code, format string, args ...any) *Error {
	return &Error{Code: code, Msg: fmt.Sprintf(format, args...), Err: err}
}

// Error implements error: code, message and cause, for logs.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Msg, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Msg)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the first fault in err's chain, Internal when
// there is none, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if f, ok := errors.AsType[*Error](err); ok {
		return f.Code
	}
	return Internal
}

// Text returns the text of an error that callers may see: the fault's message, if it is one.
func Text(err error) string {
	if f, ok := errors.AsType[*Error](err); ok {
		return f.Msg
	}
	return err.Error()
}

// Is reports whether err's code is code.
func Is(err error, code Code) bool { return CodeOf(err) == code }

// ChangedNothing reports whether err is a fault that says so.
func ChangedNothing(err error) bool {
	f, ok := errors.AsType[*Error](err)
	return ok && f.Unchanged
}

// Found separates a record that need not exist from a failure to read it: a
// NotFound fault becomes false, every other error stays.
func Found[T any](record T, err error) (T, bool, error) {
	if Is(err, NotFound) {
		return record, false, nil
	}
	return record, err == nil, err
}
