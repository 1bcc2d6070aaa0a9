package database

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/schemas/span"
)

// statementSpans adds a span for each statement to the trace of its context. The statements of a group
// are in the trace of the call that sends them.
type statementSpans struct{}

type spanKey struct{}

// TraceQueryStart implements pgx.QueryTracer.
func (statementSpans) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if !span.IsRecorded(ctx) {
		return ctx
	}
	inner, end := span.Start(ctx, nameStatement(data.SQL))
	return context.WithValue(inner, spanKey{}, end)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (statementSpans) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	if end, ok := ctx.Value(spanKey{}).(func(*error)); ok {
		end(&data.Err)
	}
}

// TraceBatchStart implements pgx.BatchTracer.
func (statementSpans) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	if !span.IsRecorded(ctx) {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, new(time.Now()))
}

// TraceBatchQuery implements pgx.BatchTracer. The statement began when the one before it ended.
func (statementSpans) TraceBatchQuery(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	if began, ok := ctx.Value(spanKey{}).(*time.Time); ok {
		span.Add(ctx, nameStatement(data.SQL), *began, data.Err)
		*began = time.Now()
	}
}

// TraceBatchEnd implements pgx.BatchTracer.
func (statementSpans) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

var (
	writtenTable = regexp.MustCompile(`(?i)\b(INSERT) INTO (?:"[^"]*"\.)?"?(\w+)|\b(UPDATE) (?:"[^"]*"\.)?"?(\w+)"?(?: \w+)?\s+SET\b|\b(DELETE) FROM (?:"[^"]*"\.)?"?(\w+)`)
	readTable    = regexp.MustCompile(`(?i)\b(SELECT)\b.*?\bFROM "[^"]*"\."?(\w+)`)
	firstWord    = regexp.MustCompile(`\w+`)
)

// nameStatement returns what a statement does, and the first table that it writes or, without one,
// reads: "INSERT loan".
func nameStatement(statement string) string {
	flat := strings.Join(strings.Fields(statement), " ")
	found := writtenTable.FindStringSubmatch(flat)
	if found == nil {
		found = readTable.FindStringSubmatch(flat)
	}
	if found == nil {
		return strings.ToUpper(firstWord.FindString(flat))
	}
	words := strings.Fields(strings.Join(found[1:], " "))
	return strings.ToUpper(words[0]) + " " + words[1]
}
