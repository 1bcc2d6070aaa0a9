package staff

import (
	"net/http"
	"strings"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/web"
)

// The page Circulation rules: the stored text, with a warning at each rule whose item limit counts
// nothing. FOLIO's own settings change the rules.

type rulesPage struct {
	Fault    *policy.SyntaxError
	Broken   *policy.SyntaxError
	Warnings []policy.UncountedLimit
	Lines    []rulesLine
	ShowIDs  bool
	Toggle   string // path of the same page with ids, or without
}

// rulesLine is a line of the text; Warning is nil for one without.
type rulesLine struct {
	Number  int
	Parts   []rulesPart
	Warning *policy.UncountedLimit
}

// rulesPart is text, or the name of a record with its id.
type rulesPart struct{ Text, ID string }

// idsParam is the parameter that shows ids beside names.
const idsParam = "ids"

func (p *pages) showRules(v *visit) error {
	review, err := p.admin.Rules(v.ctx())
	if err != nil {
		return err
	}
	shown := rulesPage{
		Fault: review.Fault, Broken: review.Broken, Warnings: review.Uncounted,
		ShowIDs: web.QueryOf(v.c).Text(idsParam) == patronsShown, Toggle: v.path("/rules") + "?" + idsParam + "=" + patronsShown + "#rules",
	}
	if shown.ShowIDs {
		shown.Toggle = v.path("/rules") + "#rules"
	}
	names := p.admin.NameRules(v.ctx(), review.Text)
	if text := strings.TrimRight(review.Text, " \r\n"); text != "" {
		for i, line := range policy.SplitLines(text) {
			shown.Lines = append(shown.Lines, rulesLine{Number: i + 1, Parts: nameParts(strings.TrimRight(line, " "), names)})
		}
	}
	for i, w := range shown.Warnings {
		shown.Lines[w.Line-1].Warning = &shown.Warnings[i]
	}
	return v.show(http.StatusOK, "rules.html", "/rules", "nav.rules", shown)
}

// nameParts puts names in place of the ids in a line. An id without a name stays.
func nameParts(line string, names map[string]string) []rulesPart {
	var parts []rulesPart
	end := 0
	for _, m := range policy.FindMentions(line) {
		if name := names[strings.ToLower(m.ID)]; name != "" {
			parts = append(parts, rulesPart{Text: line[end:m.Start]}, rulesPart{Text: name, ID: m.ID})
			end = m.End
		}
	}
	return append(parts, rulesPart{Text: line[end:]})
}
