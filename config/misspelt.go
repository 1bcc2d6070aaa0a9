package config

import (
	"cmp"
	"context"
	"log/slog"
	"reflect"
	"slices"
	"strings"

	"github.com/caarlos0/env/v10"
)

// Misspelling is a variable that no setting has, and the setting that it resembles.
type Misspelling struct{ Variable, Meant string }

// wellKnown are variables of other programs that resemble a setting.
var wellKnown = []string{"TENANT"} // make run's

// Misspelt returns the variables of environ that resemble a setting of cfg, a
// pointer to a struct, without being one: their values are not used. Values are
// never returned, since they may be passwords.
func Misspelt(cfg any, environ []string) []Misspelling {
	var known []string
	for _, s := range settingsOf(reflect.TypeOf(cfg)) {
		known = append(known, s.variable)
	}
	slices.Sort(known)
	var found []Misspelling
	for name := range env.ToMap(environ) {
		if slices.Contains(known, name) || slices.Contains(wellKnown, name) {
			continue
		}
		if i := slices.IndexFunc(known, func(setting string) bool { return resembles(name, setting) }); i >= 0 {
			found = append(found, Misspelling{Variable: name, Meant: known[i]})
		}
	}
	slices.SortFunc(found, func(a, b Misspelling) int { return cmp.Compare(a.Variable, b.Variable) })
	return found
}

// WarnOfMisspelt logs a line for each variable that Misspelt finds.
func WarnOfMisspelt(ctx context.Context, log *slog.Logger, cfg any, environ []string) {
	for _, m := range Misspelt(cfg, environ) {
		log.WarnContext(ctx, "this variable is no setting and is not used", "variable", m.Variable, "resembles", m.Meant)
	}
}

// resembles reports whether name differs from the setting in case or underscores
// alone, or in at most two letters. A short setting allows fewer, because many
// variables of other programs are near it: HOST and PORT differ in two.
func resembles(name, setting string) bool {
	name = strings.ToUpper(name)
	if strings.ReplaceAll(name, "_", "") == strings.ReplaceAll(setting, "_", "") {
		return true
	}
	return distance(name, setting) <= min(2, len(setting)/4)
}

// distance is how many letters must be added, removed or changed to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // distances of a's beginning to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
