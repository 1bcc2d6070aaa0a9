// Package library has FOLIO's records as circulation reads them, the ports to read them, and the
// checks that check-outs and renewals share.
//
// Every method of a port returns a fault with the code NotFound if the record does not exist. Any
// other error ends what the caller does.
package library

import (
	"context"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
)

// Records finds what check-outs, check-ins and renewals are judged by.
type Records interface {
	// Snapshot reads what storage has on the subjects, as of one moment. It is never cached. The
	// other facts are empty.
	Snapshot(ctx context.Context, subjects schemas.CheckOutSubjects) (Facts, error)

	// The other records may be two seconds old.
	TitleLevelRequests(ctx context.Context) (bool, error)
	Group(ctx context.Context, id string) (Group, error)
	Named(ctx context.Context, kind NamedKind, id string) (Named, error)
	Location(ctx context.Context, id string) (Location, error)
	FixedSchedule(ctx context.Context, id string) (policy.FixedSchedule, error)
	// Rules returns the tenant's compiled circulation rules. The error is that of policy.Compile if the
	// stored text does not compile.
	Rules(ctx context.Context) (*policy.Rules, error)
}

// LoanPolicies finds loan policies. They may be two seconds old.
type LoanPolicies interface {
	LoanPolicy(ctx context.Context, id string) (policy.LoanPolicy, error)
}

// RecordsWithPolicies finds both.
type RecordsWithPolicies interface {
	Records
	LoanPolicies
}
