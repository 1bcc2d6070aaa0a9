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

// Misspelling is a variable without a setting, and the setting that it resembles.
type Misspelling struct{ Variable, Meant string }

// wellKnown are variables of other programs that resemble a setting.
var wellKnown = []string{"TENANT"} // make run's

// FindMisspelt returns the variables of environ that resemble a setting of cfg, a pointer to
// a struct, and are none. It returns no values, because they may be passwords.
func FindMisspelt(cfg any, environ []string) []Misspelling {
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

// WarnOfMisspelt logs a line for each variable that FindMisspelt finds.
func WarnOfMisspelt(ctx context.Context, log *slog.Logger, cfg any, environ []string) {
	for _, m := range FindMisspelt(cfg, environ) {
		log.WarnContext(ctx, "this variable is no setting and is not used", "variable", m.Variable, "resembles", m.Meant)
	}
}

// resembles reports whether name differs from the setting only in case, underscores or at
// most two letters. Short settings allow fewer letters, because variables of other programs
// resemble them: HOST and PORT differ in two.
func resembles(name, setting string) bool {
	name = strings.ToUpper(name)
	if strings.ReplaceAll(name, "_", "") == strings.ReplaceAll(setting, "_", "") {
		return true
	}
	return distance(name, setting) <= min(2, len(setting)/4)
}

// distance returns how many letters to add, remove or change in a to get b.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // distances of a prefix of a to each prefix of b
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
