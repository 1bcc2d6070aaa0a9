package httpapi

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// refusedRules is how FOLIO answers rules that cannot be used: 422 with no list
// of errors. Line and column, both always counted from 1, are those of the fault;
// a body that holds no rules has none. (FOLIO counts columns from 0 for missing and
// repeated policies; an editor that moves its cursor there needs one way of counting.)
type refusedRules struct {
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
}

// putRules handles PUT /circulation/rules: only rules that compile, and whose loan, request and
// notice policies exist, are stored. Storage has no records of the other kinds.
func (h circulation) putRules(c echo.Context) error {
	var sent struct {
		RulesAsText *string `json:"rulesAsText"`
	}
	switch err := web.Decode(c, &sent); {
	case fault.Is(err, fault.Malformed):
		return answerRefused(c, refusedRules{Message: web.ToFault(err).Msg})
	case err != nil:
		return err
	case sent.RulesAsText == nil:
		return answerRefused(c, refusedRules{Message: "The body must be a JSON object with the string rulesAsText"})
	}
	ctx := c.Request().Context()
	compiled, err := policy.Compile(*sent.RulesAsText)
	if err == nil {
		err = admin.CheckRules(ctx, h.Storage, compiled)
	}
	if syntax, ok := errors.AsType[*policy.SyntaxError](err); ok {
		return answerRefused(c, refusedRules{Message: syntax.Message, Line: syntax.Line, Column: syntax.Column + 1})
	}
	if err != nil {
		return err
	}
	uncounted, err := admin.FindUncountedLimits(ctx, h.Storage, compiled)
	if err != nil {
		return err
	}
	if err := h.Storage.PutRules(ctx, *sent.RulesAsText); err != nil {
		return err
	}
	h.warnOfRules(c, uncounted)
	return c.NoContent(http.StatusNoContent)
}

// WarningHeader is on the answer to rules that were stored although a limit in them counts nothing:
// one line for each such rule.
const WarningHeader = "X-Rules-Warning"

var warnings = []web.Parameter{{Name: WarningHeader, Meaning: "a rule whose item limit counts nothing; once for each"}}

// maxWarnings is how many lines the header has at most, so that a proxy accepts it.
const maxWarnings = 20

// warnOfRules adds the warnings to the answer and to the log.
func (h circulation) warnOfRules(c echo.Context, uncounted []policy.UncountedLimit) {
	for i, u := range uncounted {
		if i == maxWarnings {
			c.Response().Header().Add(WarningHeader, fmt.Sprintf("%d more rules like these", len(uncounted)-i))
			break
		}
		c.Response().Header().Add(WarningHeader, u.String())
	}
	if len(uncounted) > 0 {
		h.Log.WarnContext(c.Request().Context(), "circulation rules stored; item limits in them count nothing",
			"rules", len(uncounted), "first", uncounted[0].String(), "policy_id", uncounted[0].Policy.ID)
	}
}

func answerRefused(c echo.Context, why refusedRules) error {
	c.Response().Header().Set(fault.Header, string(fault.Invalid))
	return c.JSON(http.StatusUnprocessableEntity, why)
}
