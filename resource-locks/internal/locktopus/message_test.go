package locktopus

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"checkoutlock/resource-locks/internal/engine"
)

func TestParseRequest(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		frame, action, problem string
	}{
		"a release":                  {`{"action":"release"}`, "release", ""},
		"unknown fields":             {`{"action":"lock","resources":[],"x":{"y":[1]}}`, "lock", ""},
		"an empty object":            {`{}`, "", ""},
		"null":                       {`null`, "", ""},
		"no JSON":                    {`lock`, "", "not valid JSON"},
		"nothing":                    {``, "", "not valid JSON"},
		"half an object":             {`{"action":`, "", "not valid JSON"},
		"two objects":                {`{"action":"lock"}{}`, "", "after top-level value"},
		"an array":                   {`[]`, "", "must be an object"},
		"a number":                   {`7`, "", "must be an object"},
		"an action that is a number": {`{"action":7}`, "", "must be an object whose action is a text"},
		"bytes that are no UTF-8":    {"{\"action\":\"\xff\"}", "", "not valid UTF-8"},
		"half of a surrogate pair":   {`{"action":"lock","resources":[{"type":"r","path":["\ud800"]}]}`, "", "is no character"},
		"a NUL":                      {`{"action":"lock","resources":[{"type":"r","path":["\u0000"]}]}`, "", "is no character"},
		"deep nesting":               {`{"x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, "", "exceeded max depth"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := parseRequest([]byte(tt.frame))
			checkProblem(t, err, tt.problem)
			if tt.problem == "" && r.Action != tt.action {
				t.Errorf("the action is %q, want %q", r.Action, tt.action)
			}
		})
	}
}

func TestParseResources(t *testing.T) {
	t.Parallel()
	write := func(path ...string) []engine.Resource {
		return []engine.Resource{{Path: append([]string{}, path...), Write: true}}
	}
	tests := map[string]struct {
		resources string
		want      []engine.Resource
		problem   string
	}{
		"write": {`[{"type":"write","path":["a","b"]}]`, write("a", "b"), ""},
		"short and upper case": {
			`[{"type":"W","path":["a"]},{"type":"Read","path":["b"]},{"type":"r","path":["c"]}]`,
			[]engine.Resource{{Path: []string{"a"}, Write: true}, {Path: []string{"b"}}, {Path: []string{"c"}}},
			"",
		},
		"a path that is missing":      {`[{"type":"write"}]`, write(), ""},
		"a path that is null":         {`[{"type":"write","path":null}]`, write(), ""},
		"a path that is empty":        {`[{"type":"write","path":[]}]`, write(), ""},
		"an empty segment":            {`[{"type":"write","path":[""]}]`, write(""), ""},
		"a segment with a slash":      {`[{"type":"write","path":["a/b"]}]`, write("a/b"), ""},
		"unknown fields":              {`[{"type":"write","path":["a"],"note":1}]`, write("a"), ""},
		"no resources":                {``, nil, "at least one resource"},
		"resources that are null":     {`null`, nil, "at least one resource"},
		"an empty list":               {`[]`, nil, "at least one resource"},
		"a text":                      {`"write"`, nil, "resources must be a list"},
		"an object":                   {`{"type":"write"}`, nil, "resources must be a list"},
		"an unknown type":             {`[{"type":"x","path":["a"]}]`, nil, "cannot build resource lock: invalid lock type: x"},
		"a type that is missing":      {`[{"path":["a"]}]`, nil, "cannot build resource lock: invalid lock type: "},
		"a resource that is null":     {`[null]`, nil, "cannot build resource lock: invalid lock type: "},
		"a type that is a number":     {`[{"type":1,"path":["a"]}]`, nil, "resources must be a list"},
		"a path that is a text":       {`[{"type":"write","path":"a"}]`, nil, "resources must be a list"},
		"a segment that is a number":  {`[{"type":"write","path":[1]}]`, nil, "resources must be a list"},
		"a segment that is null":      {`[{"type":"write","path":["a",null]}]`, nil, "resources[0].path[1] is null"},
		"a long type is shortened":    {`[{"type":"` + strings.Repeat("x", 5000) + `"}]`, nil, "invalid lock type: " + strings.Repeat("x", 50)},
		"more than the engine allows": {`[` + strings.Repeat(`{"type":"r"},`, engine.MaxResources) + `{"type":"r"}]`, nil, "a lock has 1001 resources, allowed: 1000"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseResources(json.RawMessage(tt.resources))
			checkProblem(t, err, tt.problem)
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// checkProblem checks that the error is a protocolError with the text, or none.
func checkProblem(t *testing.T, err error, problem string) {
	t.Helper()
	if problem == "" {
		if err != nil {
			t.Errorf("got the error %v", err)
		}
		return
	}
	var mistake protocolError
	if !errors.As(err, &mistake) || !strings.Contains(mistake.Error(), problem) || len(mistake) > 500 {
		t.Errorf("got the error %v, want a short one with %q", err, problem)
	}
}
