package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v10"

	"checkoutlock/schemas"
)

// Validator is a set of settings that checks itself.
type Validator interface{ Validate() error }

// Load reads cfg, a pointer to a struct, from environ (as os.Environ), and then checks it.
// The error has a line for each bad setting, with variable, value and allowed values.
// Fields set before the call are defaults of settings without a default in the tag.
// A field with the tag secret may come from a file, which its variable with _FILE names.
func Load(cfg Validator, environ []string) error {
	values := env.ToMap(environ)
	errs := readSecrets(cfg, values)
	parseErrs := parseValues(cfg, values)
	errs = append(errs, parseErrs...)
	if len(parseErrs) > 0 {
		// Validate gets the defaults of unreadable values, so that each is reported once.
		errs = append(errs, parseValues(cfg, values)...)
	}
	errs = append(errs, cfg.Validate())
	err := errors.Join(errs...)
	if err == nil {
		return nil
	}
	return errors.New("these settings cannot be used:\n  " + strings.ReplaceAll(err.Error(), "\n", "\n  "))
}

// readSecrets sets the values of secrets that are in files. Its errors do not repeat what a file has.
func readSecrets(cfg any, values map[string]string) []error {
	var errs []error
	for _, s := range settingsOf(reflect.TypeOf(cfg)) {
		variable := s.variable + fileSuffix
		file := values[variable]
		if !s.secret || file == "" {
			continue
		}
		if values[s.variable] != "" {
			errs = append(errs, fmt.Errorf("%s and %s are both set, allowed: one of them", s.variable, variable))
			continue
		}
		content, err := os.ReadFile(file) //nolint:gosec // who sets the environment chooses the file
		if err != nil {
			errs = append(errs, fmt.Errorf("%s names a file that cannot be read: %w", variable, err))
			continue
		}
		values[s.variable] = strings.TrimRight(string(content), "\r\n")
		if values[s.variable] == "" {
			errs = append(errs, fmt.Errorf("%s names %s, which is empty", variable, file))
		}
	}
	return errs
}

// fileSuffix ends the variable that names the file of a secret.
const fileSuffix = "_FILE"

// parseValues reads values into cfg, and removes unreadable ones. Its errors name variables
// and values; those of the library name Go fields.
func parseValues(cfg any, values map[string]string) []error {
	err := env.ParseWithOptions(cfg, env.Options{Environment: values})
	if err == nil {
		return nil
	}
	list := []error{err}
	if aggregate, ok := errors.AsType[env.AggregateError](err); ok {
		list = aggregate.Errors
	}
	settings := settingsOf(reflect.TypeOf(cfg))
	for i, err := range list {
		pe, ok := errors.AsType[env.ParseError](err)
		if !ok {
			continue
		}
		for _, s := range settings {
			if s.field == pe.Name && values[s.variable] != "" {
				list[i] = OutOfRange(s.variable, fmt.Sprintf("%q", values[s.variable]), s.kind)
				delete(values, s.variable)
				break
			}
		}
	}
	return list
}

// setting is a field that is read from the environment.
type setting struct {
	field    string // its name, which two structs may share
	variable string
	preset   string // the default in the tag
	kind     string // the allowed values, in words
	secret   bool   // a file may hold it
}

// settingsOf returns the settings of t and its nested structs.
func settingsOf(t reflect.Type) []setting {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var found []setting
	for _, f := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(f.Tag.Get("env"), ",")
		switch {
		case tag != "" && f.Type.Kind() == reflect.Slice:
			separator := cmp.Or(f.Tag.Get("envSeparator"), ",")
			kind := "values separated by " + separator + ", each " + kindOf(f.Type.Elem())
			found = append(found, setting{f.Name, tag, f.Tag.Get("envDefault"), kind, false})
		case tag != "":
			_, isSecret := f.Tag.Lookup("secret")
			found = append(found, setting{f.Name, tag, f.Tag.Get("envDefault"), kindOf(f.Type), isSecret})
		case f.Type.Kind() == reflect.Struct && !f.Anonymous: // VisibleFields lists the fields of an embedded one
			found = append(found, settingsOf(f.Type)...)
		}
	}
	return found
}

// kindOf describes the allowed values of type t in words.
func kindOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "a duration such as 250ms or 2s"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case reflect.Zero(t).CanInt():
		return "a whole number"
	}
	return "a value of type " + t.String()
}

// Default is a variable with the value that it has unless it is set, as module descriptors write it.
type Default struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ListDefaults returns the settings of cfg, a pointer to a struct, that have a default in their tags,
// sorted by name.
func ListDefaults(cfg any) []Default {
	var found []Default
	for _, s := range settingsOf(reflect.TypeOf(cfg)) {
		if s.preset != "" {
			found = append(found, Default{s.variable, s.preset})
		}
	}
	slices.SortFunc(found, func(a, b Default) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// listVariables returns the variables of all settings of cfg, sorted.
func listVariables(cfg any) []string {
	var names []string
	for _, s := range settingsOf(reflect.TypeOf(cfg)) {
		names = append(names, s.variable)
		if s.secret {
			names = append(names, s.variable+fileSuffix)
		}
	}
	slices.Sort(names)
	return names
}

// ListSettings returns a paragraph for the help of a command: the variables of all settings of
// cfg, a pointer to a struct, sorted.
func ListSettings(cfg any) string {
	const columns = 100
	text, width := "Settings are environment variables, described in docs/settings.md:", columns
	for i, name := range listVariables(cfg) {
		if i > 0 {
			text += ","
		}
		if width += len(name) + len(" ,"); width > columns {
			text += "\n " // the names begin in the third column
			width = len("   ,") + len(name)
		}
		text += " " + name
	}
	return text + ".\n"
}

// Misspelling is a variable without a setting, and the setting that it resembles.
type Misspelling struct{ Variable, Meant string }

// wellKnown are variables of other programs that resemble a setting.
var wellKnown = []string{"TENANT"} // make run's

// FindMisspelt returns the variables of environ that resemble a setting of cfg, a pointer to
// a struct, and are none. It returns no values, because they may be passwords.
func FindMisspelt(cfg any, environ []string) []Misspelling {
	known := listVariables(cfg)
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

// resembles reports whether name differs from the setting only in case, underscores or at
// most two letters. Short settings allow fewer letters, because variables of other programs
// resemble them: HOST and PORT differ in two.
func resembles(name, setting string) bool {
	name = strings.ToUpper(name)
	if strings.ReplaceAll(name, "_", "") == strings.ReplaceAll(setting, "_", "") {
		return true
	}
	return schemas.CountEdits([]rune(name), []rune(setting)) <= min(2, len(setting)/4)
}
