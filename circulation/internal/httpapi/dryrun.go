package httpapi

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/web"
)

// DryRuns judges check-outs that do not happen.
type DryRuns interface {
	DryRun(ctx context.Context, req checkout.DryRunRequest) (checkout.DryRun, error)
}

// dryRunAnswer is checkout.DryRun as FOLIO's clients read it.
type dryRunAnswer struct {
	LoanPolicyID         string `json:"loanPolicyId"`
	OverdueFinePolicyID  string `json:"overdueFinePolicyId"`
	LostItemPolicyID     string `json:"lostItemPolicyId"`
	PatronNoticePolicyID string `json:"patronNoticePolicyId"`
}

type dryRunHandlers struct{ dryRuns DryRuns }

// dryRunRoutes are FOLIO's (mod-circulation, interface circulation).
func dryRunRoutes(d DryRuns) []web.Route {
	return []web.Route{{
		Method: http.MethodPost, Path: "/circulation/check-out-by-barcode-dry-run", Handler: dryRunHandlers{d}.run,
		Permission: "circulation.check-out-by-barcode-dry-run.post",
	}}
}

// run handles POST /circulation/check-out-by-barcode-dry-run: 201 with the
// policies, although nothing is created: that is FOLIO's status.
func (h dryRunHandlers) run(c echo.Context) error {
	var req checkout.DryRunRequest
	if err := web.DecodeExact(c, &req); err != nil {
		return err
	}
	found, err := h.dryRuns.DryRun(c.Request().Context(), req)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, dryRunAnswer(found))
}
