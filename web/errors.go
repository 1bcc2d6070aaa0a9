package web

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// statusClientLeft is logged and counted for a client that left; no client reads it.
const statusClientLeft = 499

// Errors is FOLIO's errors JSON.
type Errors struct {
	Errors       []fault.Detail `json:"errors"`
	TotalRecords int            `json:"total_records,omitempty"`
}

// writeError alone chooses the status of an error. Handlers return errors as they got
// them. Only the log has an error's cause; a 500 has the request id, which finds the log
// line.
func (o Options) writeError(err error, c echo.Context) {
	f := ToFault(err)
	status := statusOf(err, f)
	if c.Response().Committed {
		if errors.As(err, new(*cutOffError)) {
			c.Response().Status = status // for log and metrics; the client has seen 200
		}
		return
	}
	header := c.Response().Header()
	header.Set(fault.Header, string(f.Code))
	SetRetryAfter(header, f)
	if f.Code == fault.Overloaded {
		header.Set("Connection", "close") // frees its memory, and the next try may reach another instance
	}
	if f.Unchanged {
		header.Set(fault.UnchangedHeader, "true")
	}
	if err := o.writeFault(c, status, f); err != nil {
		o.Log.DebugContext(c.Request().Context(), "error answer not written", "err", err)
	}
}

func statusOf(err error, f *fault.Error) int {
	if errors.Is(err, context.Canceled) {
		return statusClientLeft
	}
	return fault.Status(f.Code)
}

// outageRetryAfter is the Retry-After of an outage that names none: most are a
// restart or a failover, and end within seconds.
const outageRetryAfter = time.Second

// SetRetryAfter says when the caller may try again, if that is known. Error answers have it by
// themselves, and handlers that answer f set it.
func SetRetryAfter(header http.Header, f *fault.Error) {
	after := f.RetryAfter
	if f.Code == fault.Unavailable {
		after = cmp.Or(after, outageRetryAfter)
	}
	if after > 0 {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	}
}

func (o Options) writeFault(c echo.Context, status int, f *fault.Error) error {
	if o.WriteFault != nil {
		return o.WriteFault(c, status, f)
	}
	details := f.Details
	if o.JSONFaults && len(details) == 0 && (status < http.StatusInternalServerError || f.Code == fault.OutcomeUnknown) {
		details = fault.List{fault.Refusal(string(f.Code), f.Msg)}
	}
	if len(details) > 0 {
		return c.JSON(status, Errors{Errors: details})
	}
	msg := f.Msg
	if status == http.StatusInternalServerError {
		msg += " (request id " + okapi.FromContext(c.Request().Context()).RequestID + ")"
	}
	return c.String(status, msg)
}

// ToFault gives every error a code. An error that is no fault is a bug or an
// outage; its text is not shown.
func ToFault(err error) *fault.Error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(err, fault.Timeout, "The request took too long")
	case errors.Is(err, context.Canceled):
		return fault.Wrap(err, fault.Timeout, "The client left")
	}
	return fault.Wrap(err, fault.Internal, "Internal server error")
}
