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

// Validator is a set of settings that can check itself.
type Validator interface{ Validate() error }

// Load reads cfg, a pointer to a struct, from environ (in the form of
// os.Environ), then checks it. The error lists every bad setting, a line each,
// with variable, value and what is allowed. Fields set before the call are the
// defaults of settings whose tag has none.
func Load(cfg Validator, environ []string) error {
	values := env.ToMap(environ)
	errs := parse(cfg, values)
	if len(errs) > 0 {
		// What cannot be read is reported once: Validate gets its default instead.
		errs = append(errs, parse(cfg, values)...)
	}
	errs = append(errs, cfg.Validate())
	err := errors.Join(errs...)
	if err == nil {
		return nil
	}
	return errors.New("these settings cannot be used:\n  " + strings.ReplaceAll(err.Error(), "\n", "\n  "))
}

// parse reads values into cfg, and removes those that cannot be read. Its errors
// name the variable and its value, where the library's name Go fields.
func parse(cfg any, values map[string]string) []error {
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

// setting is one field that is read from the environment.
type setting struct {
	variable string
	kind     string // what it takes, in words
}

// settingsOf returns the settings of t, nested structs included, by the names of
// their fields.
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

// kindOf says in words what a setting of type t takes.
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
