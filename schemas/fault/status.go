package fault

import (
	"cmp"
	"net/http"
)

// Header carries the Code of every error answer, because several codes share a
// status.
const Header = "X-Fault-Code"

// UnchangedHeader is "true" in an answer of circulation-storage that changed nothing, although
// its code leaves that open. The caller need not find out, and need not repeat the call.
const UnchangedHeader = "X-Fault-Unchanged"

// Status returns the HTTP status of code; an unknown code is 500. 503 says that
// the same request may succeed later. FOLIO's checkout-lock-storage.raml has it
// for a held lock; X-Fault-Code distinguishes that from an outage and from overload.
func Status(code Code) int {
	switch code {
	case Malformed:
		return http.StatusBadRequest
	case Unauthorized:
		return http.StatusUnauthorized
	case Forbidden:
		return http.StatusForbidden
	case NotFound, UnknownTenant:
		return http.StatusNotFound
	case MethodNotAllowed:
		return http.StatusMethodNotAllowed
	case Conflict, InUse, LockLost, SettingsChanged, ItemChanged, RequestChanged, LimitReached, LoanChanged, KeyLeaseLost, GivenUp, RequestRunning:
		return http.StatusConflict
	case TooLarge:
		return http.StatusRequestEntityTooLarge
	case Invalid, LockNotAcquired, KeyReused, LoginRefused:
		return http.StatusUnprocessableEntity
	case LockQueueFull, TooManyTries:
		return http.StatusTooManyRequests
	case LockHeld, Overloaded, TenantNotReady, Unavailable:
		return http.StatusServiceUnavailable
	case Timeout, OutcomeUnknown:
		return http.StatusGatewayTimeout
	case Internal:
	}
	return http.StatusInternalServerError
}

// bareStatuses are the codes of answers without a known header. They came from a proxy: a bare 503
// is Unavailable, never LockHeld. A bare 401 is Forbidden, because the proxy refused this service
// and not its caller. 431 comes from net/http too: the caller's own address or headers were passed on.
var bareStatuses = map[int]Code{
	http.StatusBadRequest:                  Malformed,
	http.StatusRequestHeaderFieldsTooLarge: Malformed,
	http.StatusUnauthorized:                Forbidden,
	http.StatusForbidden:                   Forbidden,
	http.StatusNotFound:                    NotFound,
	http.StatusConflict:                    Conflict,
	http.StatusRequestEntityTooLarge:       TooLarge,
	http.StatusUnprocessableEntity:         Invalid,
	http.StatusBadGateway:                  Unavailable,
	http.StatusServiceUnavailable:          Unavailable,
	http.StatusGatewayTimeout:              Timeout,
}

// CodeFromAnswer returns the code of an error answer from its status and its X-Fault-Code header.
func CodeFromAnswer(status int, header string) Code {
	for _, c := range Codes() {
		if string(c) == header && Status(c) == status {
			return c
		}
	}
	return cmp.Or(bareStatuses[status], Internal)
}
