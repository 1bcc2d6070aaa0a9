package locket

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"checkoutlock/resource-locks/internal/locket/locketpb"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

// observeCall converts errors and panics to answers, and logs and measures each call.
func (l *listener) observeCall(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	method := path.Base(info.FullMethod)
	ctx = okapi.NewContext(ctx, okapi.Call{RequestID: requestID(ctx)})
	began := time.Now()
	l.metrics.begin(method)
	resp, err := l.callSafely(ctx, req, handler)
	answer := err
	if _, is := status.FromError(err); !is {
		answer = statusError(err)
	}
	took := time.Since(began)
	l.metrics.end(method, ctx.Err(), status.Code(answer), took)
	l.logCall(ctx, method, req, status.Code(answer), took, err)
	return resp, answer
}

// callSafely turns a panic into an error, because gRPC would end the process.
func (l *listener) callSafely(ctx context.Context, req any, handler grpc.UnaryHandler) (resp any, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.Log.ErrorContext(ctx, "panic", "err", fmt.Sprint(p), "stack", string(debug.Stack()))
			resp, err = nil, errPanic
		}
	}()
	return handler(ctx, req)
}

// requestID is the first value that the client sent as "uuid", empty without one.
func requestID(ctx context.Context) string {
	sent := metadata.ValueFromIncomingContext(ctx, "uuid")
	if len(sent) == 0 {
		return ""
	}
	return sent[0]
}

// logCall writes the call's line: at debug for the normal work of the protocol.
func (l *listener) logCall(ctx context.Context, method string, req any, code codes.Code, took time.Duration, err error) {
	level := slog.LevelWarn
	if isExpected(code) || (code == codes.Unavailable || code == codes.DeadlineExceeded) && l.CountRefusal() {
		level = slog.LevelDebug
	}
	if !l.Log.Enabled(ctx, level) {
		return // before the attributes are made, which is most of the work
	}
	key, owner := namesOf(req)
	attrs := []slog.Attr{
		slog.String("method", method), slog.String("code", code.String()),
		slog.String("key", key), slog.String("owner", owner),
		slog.Float64("took_ms", schemas.Milliseconds(took)),
	}
	if err != nil {
		attrs = append(attrs, slog.String("err", err.Error()))
	}
	l.Log.LogAttrs(ctx, level, "call", attrs...)
}

func isExpected(code codes.Code) bool {
	return code == codes.OK || code == codes.AlreadyExists || code == codes.NotFound || code == codes.Canceled
}

// namesOf returns the key and the owner of a request, as far as it has them.
func namesOf(req any) (key, owner string) {
	switch r := req.(type) {
	case interface{ GetResource() *locketpb.Resource }:
		return r.GetResource().GetKey(), r.GetResource().GetOwner()
	case *locketpb.FetchRequest:
		return r.GetKey(), ""
	}
	return "", ""
}
