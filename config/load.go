package config

import (
	"errors"
	"fmt"
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
	var errs []error
	if err := env.ParseWithOptions(cfg, env.Options{Environment: values}); err != nil {
		errs = append(errs, parseErrors(err, variables(reflect.TypeOf(cfg)), values)...)
	}
	errs = append(errs, cfg.Validate())
	err := errors.Join(errs...)
	if err == nil {
		return nil
	}
	return errors.New("these settings cannot be used:\n  " + strings.ReplaceAll(err.Error(), "\n", "\n  "))
}

// parseErrors rewrites the library's errors, which name Go fields, so that they
// name the variable and its value.
func parseErrors(err error, variables, values map[string]string) []error {
	list := []error{err}
	var aggregate env.AggregateError
	if errors.As(err, &aggregate) {
		list = aggregate.Errors
	}
	for i, err := range list {
		var pe env.ParseError
		if errors.As(err, &pe) {
			name := variables[pe.Name]
			list[i] = OutOfRange(name, fmt.Sprintf("%q", values[name]), kindOf(pe.Type))
		}
	}
	return list
}

// variables maps the names of t's fields, nested structs included, to their
// environment variables.
func variables(t reflect.Type) map[string]string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	found := map[string]string{}
	for _, f := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(f.Tag.Get("env"), ",")
		switch {
		case tag != "":
			found[f.Name] = tag
		case f.Type.Kind() == reflect.Struct:
			for name, variable := range variables(f.Type) {
				found[name] = variable
			}
		}
	}
	return found
}

// kindOf says in words what a setting of type t takes.
func kindOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "a duration such as 250ms or 2s"
	case t.Kind() == reflect.Slice:
		return "a list, each " + kindOf(t.Elem())
	case t.Kind() == reflect.Bool:
		return "true or false"
	case reflect.Zero(t).CanInt():
		return "a whole number"
	}
	return "a value of type " + t.String()
}
