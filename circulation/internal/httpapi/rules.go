package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

type rulesHandlers struct{ rules Rules }

func (h rulesHandlers) get(c echo.Context) (schemas.CirculationRules, error) {
	return h.rules.StoredRules(c.Request().Context())
}

// refusedRules is how FOLIO answers rules that cannot be used: 422 with no list
// of errors. Line and column, both always counted from 1, are those of the fault;
// a body that holds no rules has none. (FOLIO counts columns from 0 for missing and
// repeated policies; an editor that moves its cursor there needs one way of counting.)
type refusedRules struct {
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
}

// put handles PUT /circulation/rules: only rules that compile, and whose loan, request and
// notice policies exist, are stored. Storage has no records of the other kinds.
func (h rulesHandlers) put(c echo.Context) error {
	body, err := web.ReadBody(c)
	if fault.Is(err, fault.Malformed) {
		return answerRefused(c, refusedRules{Message: web.ToFault(err).Msg})
	}
	if err != nil {
		return err
	}
	var sent struct {
		RulesAsText *string `json:"rulesAsText"`
	}
	if err := json.Unmarshal(body, &sent); err != nil || sent.RulesAsText == nil {
		return answerRefused(c, refusedRules{Message: "The body must be a JSON object with the string rulesAsText"})
	}
	err = h.check(c, *sent.RulesAsText)
	var syntax *policy.SyntaxError
	if errors.As(err, &syntax) {
		return answerRefused(c, refusedRules{Message: syntax.Message, Line: syntax.Line, Column: syntax.Column + 1})
	}
	if err != nil {
		return err
	}
	if err := h.rules.PutRules(c.Request().Context(), *sent.RulesAsText); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// check returns a *policy.SyntaxError for a text that cannot be used.
func (h rulesHandlers) check(c echo.Context, text string) error {
	compiled, err := policy.Compile(text)
	if err != nil {
		return err
	}
	if err := compiled.CheckPolicies(); err != nil {
		return err
	}
	for _, kept := range []struct {
		kind     policy.Kind
		existing func(ctx context.Context, ids []string) ([]string, error)
	}{{policy.KindLoan, h.rules.LoanPolicies}, {policy.KindRequest, h.rules.RequestPolicies}, {policy.KindNotice, h.rules.NoticePolicies}} {
		named := compiled.PolicyIDs(kept.kind)
		ids := make([]string, len(named))
		for i, ref := range named {
			ids[i] = ref.ID
		}
		existing, err := kept.existing(c.Request().Context(), ids)
		if err != nil {
			return err
		}
		for _, ref := range named {
			if !slices.Contains(existing, ref.ID) {
				return ref.NewNotFound()
			}
		}
	}
	return nil
}

func answerRefused(c echo.Context, why refusedRules) error {
	c.Response().Header().Set(fault.Header, string(fault.Invalid))
	return c.JSON(http.StatusUnprocessableEntity, why)
}
