package library

import (
	"context"
	"errors"
	"time"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas/fault"
)

// LoanPolicies finds loan policies. They may be two seconds old.
type LoanPolicies interface {
	LoanPolicy(ctx context.Context, id string) (policy.LoanPolicy, error)
}

// ComputeRecall returns when a recalled loan is due by the loan policy that the rules chose. Faults:
// Internal without the policy; Invalid if it gives no date.
func ComputeRecall(ctx context.Context, policies LoanPolicies, policyID string, t policy.RecallTerms) (time.Time, error) {
	found, err := policies.LoanPolicy(ctx, policyID)
	if fault.Is(err, fault.NotFound) {
		return time.Time{}, NewPolicyNotFound(policyID)
	}
	if err != nil {
		return time.Time{}, err
	}
	due, err := found.Recall(t)
	if refused, ok := errors.AsType[*policy.DueDateError](err); ok {
		return time.Time{}, fault.Validation(fault.Refusal(CodeNoDueDate, refused.Message, NamePolicy(found)...))
	}
	return due, err
}
