package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/caarlos0/env/v10"
)

// Validator is a set of settings that checks itself.
type Validator interface{ Validate() error }

// Load reads cfg, a pointer to a struct, from environ (as os.Environ), and then checks it.
// The error has a line for each bad setting, with variable, value and allowed values.
// Fields set before the call are defaults of settings without a default in the tag.
func Load(cfg Validator, environ []string) error {
	values := env.ToMap(environ)
	errs := parseValues(cfg, values)
	if len(errs) > 0 {
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

// parseValues reads values into cfg, and removes unreadable ones. Its errors name variables
// and values; those of the library name Go fields.
func parseValues(cfg any, values map[string]string) []error {
	err := env.ParseWithOptions(cfg, env.Options{Environment: values})
	if err == nil {
		return nil
	}
	list := []error{err}
	var aggregate env.AggregateError
	if errors.As(err, &aggregate) {
		list = aggregate.Errors
	}
	settings := settingsOf(reflect.TypeOf(cfg))
	for i, err := range list {
		var pe env.ParseError
		if errors.As(err, &pe) {
			s := settings[pe.Name]
			list[i] = OutOfRange(s.variable, fmt.Sprintf("%q", values[s.variable]), s.kind)
			delete(values, s.variable)
		}
	}
	return list
}

// setting is a field that is read from the environment.
type setting struct {
	variable string
	kind     string // the allowed values, in words
}

// settingsOf returns the settings of t and its nested structs by field name.
func settingsOf(t reflect.Type) map[string]setting {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	found := map[string]setting{}
	for _, f := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(f.Tag.Get("env"), ",")
		switch {
		case tag != "" && f.Type.Kind() == reflect.Slice:
			separator := cmp.Or(f.Tag.Get("envSeparator"), ",")
			found[f.Name] = setting{tag, "values separated by " + separator + ", each " + kindOf(f.Type.Elem())}
		case tag != "":
			found[f.Name] = setting{tag, kindOf(f.Type)}
		case f.Type.Kind() == reflect.Struct:
			maps.Copy(found, settingsOf(f.Type))
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
