package checkout

import (
	"context"

	"checkoutlock/circulation/internal/policy"
)

// DryRunRequest is the body of POST /circulation/check-out-by-barcode-dry-run.
// Unknown properties are ignored.
type DryRunRequest struct {
	ItemBarcode      string         `json:"itemBarcode"`
	UserBarcode      string         `json:"userBarcode"`
	ProxyUserBarcode string         `json:"proxyUserBarcode"`
	OverrideBlocks   OverrideBlocks `json:"overrideBlocks"`
}

func (r DryRunRequest) asRequest() Request {
	return Request{
		ItemBarcode: r.ItemBarcode, UserBarcode: r.UserBarcode, ProxyUserBarcode: r.ProxyUserBarcode,
		OverrideBlocks: r.OverrideBlocks, dryRun: true,
	}
}

// DryRun is what a check-out would be under: the policies that the circulation
// rules choose.
type DryRun struct {
	LoanPolicyID         string `json:"loanPolicyId"`
	OverdueFinePolicyID  string `json:"overdueFinePolicyId"`
	LostItemPolicyID     string `json:"lostItemPolicyId"`
	PatronNoticePolicyID string `json:"patronNoticePolicyId"`
}

// DryRun makes all checks that CheckOut makes before it takes the patron's lock,
// and stops there: it takes no lock, asks for no lock settings and writes nothing.
// Since others lend meanwhile, it promises nothing. It takes up a place like a
// check-out, as it costs nearly as much. Faults: Overloaded; those of CheckOut's
// checks.
func (s *Service) DryRun(ctx context.Context, req DryRunRequest) (DryRun, error) {
	leave, err := s.Admission.Enter(ctx, req.UserBarcode)
	if err != nil {
		return DryRun{}, err
	}
	defer leave()
	p, err := s.validate(ctx, req.asRequest())
	if err != nil {
		return DryRun{}, err
	}
	criteria, err := p.criteria()
	if err != nil {
		return DryRun{}, err
	}
	return DryRun{
		LoanPolicyID: p.policy.ID, OverdueFinePolicyID: p.overdueFine, LostItemPolicyID: p.lostItem,
		PatronNoticePolicyID: p.rules.Match(policy.KindNotice, criteria).PolicyID,
	}, nil
}
