package commit_test

import (
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas/fault"
)

// A body of any commit is accepted, or refused as the caller's mistake.
func FuzzParse(f *testing.F) {
	parsers := []func([]byte) error{
		ignore(commit.ParseCheckOut), ignore(commit.ParseCheckIn), ignore(commit.ParseRenewal), ignore(commit.ParsePlacement),
		ignore(commit.ParseRequestChange), ignore(commit.ParseRequestMove), ignore(commit.ParseQueueOrder),
		ignore(commit.ParseCheckOutSubjects),
		func(body []byte) error { _, err := commit.ParseLoanChange(uuid.Max, body); return err },
		func(body []byte) error { _, err := commit.ParseLoanReplacement(uuid.Max, body); return err },
	}
	const id = `"0bab56e5-1ab6-4ac2-afdf-8b2df0434378"`
	for i := range parsers {
		for _, body := range []string{
			`{}`,
			`{"loan":{"id":` + id + `,"userId":` + id + `,"itemId":` + id + `,"status":{"name":"Open"}},"lockId":` + id + `,` +
				`"itemVersion":1,"limits":[{"max":15}],"takeLock":true,"loanId":` + id + `}`,
			`{"itemId":` + id + `,"loanId":` + id + `,"requestId":` + id + `,"request":{"id":` + id + `},"queue":[` + id + `]}`,
			`[]`,
			`{"loan":null,"limits":[{"max":-1}]}`,
			`{"reorderedQueue":[{"id":` + id + `,"newPosition":1}],"servicePointId":` + id + `}`,
		} {
			f.Add(i, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, parser int, body []byte) {
		err := parsers[uint(parser)%uint(len(parsers))](body)
		if code := fault.CodeOf(err); err != nil && code != fault.Malformed && code != fault.Invalid {
			t.Errorf("%q: %v", body, err)
		}
	})
}

func ignore[T any](parse func([]byte) (T, error)) func([]byte) error {
	return func(body []byte) error { _, err := parse(body); return err }
}
