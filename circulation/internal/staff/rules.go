package staff

import (
	"net/http"
	"strings"

	"checkoutlock/circulation/internal/policy"
)

// The page Circulation rules: the stored text, with a warning at each rule whose item limit counts
// nothing. FOLIO's own settings change the rules.

type rulesPage struct {
	Fault    *policy.SyntaxError
	Broken   *policy.SyntaxError
	Warnings []policy.UncountedLimit
	Lines    []rulesLine
}

// rulesLine is a line of the text; Warning is nil for one without.
type rulesLine struct {
	Number  int
	Text    string
	Warning *policy.UncountedLimit
}

func (p *pages) showRules(v *visit) error {
	review, err := p.admin.Rules(v.ctx())
	if err != nil {
		return err
	}
	shown := rulesPage{Fault: review.Fault, Broken: review.Broken, Warnings: review.Uncounted}
	if text := strings.TrimRight(review.Text, " \r\n"); text != "" {
		for i, line := range policy.SplitLines(text) {
			shown.Lines = append(shown.Lines, rulesLine{Number: i + 1, Text: strings.TrimRight(line, " ")})
		}
	}
	for i, w := range shown.Warnings {
		shown.Lines[w.Line-1].Warning = &shown.Warnings[i]
	}
	return v.show(http.StatusOK, "rules.html", "/rules", "Circulation rules", shown)
}
