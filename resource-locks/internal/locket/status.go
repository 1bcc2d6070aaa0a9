package locket

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// Published clients compare the codes of these answers and log their messages.
var (
	errLockCollision    = status.Error(codes.AlreadyExists, "lock-collision")
	errResourceNotFound = status.Error(codes.NotFound, "resource-not-found")
	errInvalidType      = status.Error(codes.NotFound, "invalid-type")
	errInvalidTTL       = status.Error(codes.InvalidArgument, "invalid-ttl")
	errInvalidOwner     = status.Error(codes.InvalidArgument, "invalid-owner")
	errNoResource       = status.Error(codes.InvalidArgument, "the request has no resource")
	errPanic            = status.Error(codes.Internal, "internal error")
	errLeft             = status.Error(codes.Canceled, "the client has left")
)

// statusError converts an error of the engine. Only the log has the text of an unexpected
// one.
func statusError(err error) error {
	f := web.ToFault(err)
	if errors.Is(err, context.Canceled) {
		return errLeft
	}
	switch f.Code {
	case fault.Invalid:
		return status.Error(codes.InvalidArgument, f.Msg)
	case fault.NotFound:
		return errResourceNotFound
	case fault.Unavailable:
		return status.Error(codes.Unavailable, "the database is not available: try again")
	case fault.Timeout:
		// Lock runners log this code as a request that timed out.
		return status.Error(codes.DeadlineExceeded, "the database did not answer in time: try again")
	default:
		return status.Error(codes.Internal, "internal error")
	}
}
