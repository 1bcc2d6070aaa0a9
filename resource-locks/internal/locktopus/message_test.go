package locktopus

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"checkoutlock/resource-locks/internal/engine"
)

func TestParseRequest(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		frame, action, problem string
	}{
		"a release":       {frame: `{"action":"release"}`, action: "release", problem: ""},
		"unknown fields":  {frame: `{"action":"lock","resources":[],"x":{"y":[1]}}`, action: "lock", problem: ""},
		"an empty object": {frame: `{}`, action: "", problem: ""},
		"null":            {frame: `null`, action: "", problem: ""},
		"no JSON":         {frame: `lock`, action: "", problem: "not valid JSON"},
		"nothing":         {frame: ``, action: "", problem: "not valid JSON"},
		"half an object":  {frame: `{"action":`, action: "", problem: "not valid JSON"},
		"two objects":     {frame: `{"action":"lock"}{}`, action: "", problem: "after top-level value"},
		"an array":        {frame: `[]`, action: "", problem: "must be an object"},
		"a number":        {frame: `7`, action: "", problem: "must be an object"},
		"an action that is a number": {
			frame: `{"action":7}`, action: "", problem: "must be an object whose action is a text",
		},
		"bytes that are no UTF-8": {frame: "{\"action\":\"\xff\"}", action: "", problem: "not valid UTF-8"},
		"half of a surrogate pair": {
			frame: `{"action":"lock","resources":[{"type":"r","path":["\ud800"]}]}`, action: "", problem: "is no character",
		},
		"a NUL": {
			frame: `{"action":"lock","resources":[{"type":"r","path":["\u0000"]}]}`, action: "", problem: "is no character",
		},
		"deep nesting": {
			frame: `{"x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, action: "",
			problem: "exceeded max depth",
		},
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
		"write": {resources: `[{"type":"write","path":["a","b"]}]`, want: write("a", "b"), problem: ""},
		"short and upper case": {
			resources: `[{"type":"W","path":["a"]},{"type":"Read","path":["b"]},{"type":"r","path":["c"]}]`,
			want:      []engine.Resource{{Path: []string{"a"}, Write: true}, {Path: []string{"b"}}, {Path: []string{"c"}}},
			problem:   "",
		},
		"a path that is missing":  {resources: `[{"type":"write"}]`, want: write(), problem: ""},
		"a path that is null":     {resources: `[{"type":"write","path":null}]`, want: write(), problem: ""},
		"a path that is empty":    {resources: `[{"type":"write","path":[]}]`, want: write(), problem: ""},
		"an empty segment":        {resources: `[{"type":"write","path":[""]}]`, want: write(""), problem: ""},
		"a segment with a slash":  {resources: `[{"type":"write","path":["a/b"]}]`, want: write("a/b"), problem: ""},
		"unknown fields":          {resources: `[{"type":"write","path":["a"],"note":1}]`, want: write("a"), problem: ""},
		"no resources":            {resources: ``, want: nil, problem: "at least one resource"},
		"resources that are null": {resources: `null`, want: nil, problem: "at least one resource"},
		"an empty list":           {resources: `[]`, want: nil, problem: "at least one resource"},
		"a text":                  {resources: `"write"`, want: nil, problem: "resources must be a list"},
		"an object":               {resources: `{"type":"write"}`, want: nil, problem: "resources must be a list"},
		"an unknown type": {
			resources: `[{"type":"x","path":["a"]}]`, want: nil, problem: "cannot build resource lock: invalid lock type: x",
		},
		"a type that is missing": {
			resources: `[{"path":["a"]}]`, want: nil, problem: "cannot build resource lock: invalid lock type: ",
		},
		"a resource that is null": {
			resources: `[null]`, want: nil, problem: "cannot build resource lock: invalid lock type: ",
		},
		"a type that is a number": {
			resources: `[{"type":1,"path":["a"]}]`, want: nil, problem: "resources must be a list",
		},
		"a path that is a text": {
			resources: `[{"type":"write","path":"a"}]`, want: nil, problem: "resources must be a list",
		},
		"a segment that is a number": {
			resources: `[{"type":"write","path":[1]}]`, want: nil, problem: "resources must be a list",
		},
		"a segment that is null": {
			resources: `[{"type":"write","path":["a",null]}]`, want: nil, problem: "resources[0].path[1] is null",
		},
		"a long type is shortened": {
			resources: `[{"type":"` + strings.Repeat("x", 5000) + `"}]`, want: nil,
			problem: "invalid lock type: " + strings.Repeat("x", 50),
		},
		"more than the engine allows": {
			resources: `[` + strings.Repeat(`{"type":"r"},`, engine.MaxResources) + `{"type":"r"}]`, want: nil,
			problem: "a lock has 1001 resources, allowed: 1000",
		},
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

// A message is refused with a short text, or it asks for what it says.
func FuzzParseRequest(f *testing.F) {
	for _, frame := range []string{
		`{"action":"lock","resources":[{"type":"write","path":["a","b"]},{"type":"R","path":[]}]}`,
		`{"action":"release"}`, `null`,
		`{"action":"lock","resources":[{"type":"w","path":[null]}]}`, `{"ACTION":"lock","resources":null}`, `[]`,
		`"\ud800"`, ``,
		`{"action":7}`, `{"action":"lock","resources":[{"type":"w","path":["\u0000"]}]}`, "\xff",
	} {
		f.Add([]byte(frame))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		r, err := parseRequest(frame)
		var resources []engine.Resource
		if err == nil {
			resources, err = parseResources(r.Resources)
		}
		if err != nil {
			if mistake, ok := errors.AsType[protocolError](err); !ok || mistake == "" || len(mistake) > 1000 {
				t.Errorf("%q: got %v, want a short protocolError", frame, err)
			}
			return
		}
		if len(resources) == 0 || len(resources) > engine.MaxResources {
			t.Errorf("%q has %d resources", frame, len(resources))
		}
		for _, resource := range resources {
			for _, segment := range resource.Path {
				if !utf8.ValidString(segment) || strings.ContainsRune(segment, 0) {
					t.Errorf("%q has the segment %q, which PostgreSQL cannot hold", frame, segment)
				}
			}
		}
	})
}
