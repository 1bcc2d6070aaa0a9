package settings_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// describeChange describes the settings that a change sets.
func describeChange(s schemas.LockSettings) string {
	enabled, ttl, waits := "-", "-", "-"
	if s.Enabled != nil {
		enabled = fmt.Sprint(*s.Enabled)
	}
	if s.TTL != nil {
		ttl = s.TTL.String()
	}
	if s.Waits != nil {
		waits = fmt.Sprint(s.Waits)
	}
	return enabled + " " + ttl + " " + waits
}

func TestParseChange(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ body, want, version string }{
		"everything": {
			body: `{"enabled":true,"lockTtlMs":2500,"retryIntervalsMs":[500,0]}`, want: "true 2.5s [500ms 0s]", version: "",
		},
		"nothing": {body: `{}`, want: "- - -", version: ""},
		"null is nothing": {
			body: `{"enabled":null,"lockTtlMs":null,"retryIntervalsMs":null,"version":null}`, want: "- - -", version: "",
		},
		"one try":        {body: `{"retryIntervalsMs":[]}`, want: "- - []", version: ""},
		"with a version": {body: `{"enabled":false,"version":"7"}`, want: "false - -", version: "7"},
		"the bounds": {
			body: `{"lockTtlMs":250,"retryIntervalsMs":[10000,10000,5000]}`, want: "- 250ms [10s 10s 5s]", version: "",
		},
		"the longest TTL": {body: `{"lockTtlMs":600000}`, want: "- 10m0s -", version: ""},
		"as it is shown": {
			body: `{"enabled":{"value":true,"source":"tenant"},"lockTtlMs":{"value":3000,"source":"environment"},` +
				`"retryIntervalsMs":{"value":[500,1000],"source":"environment"},"version":"7","longestWaitMs":1500}`,
			want: "true - -", version: "7",
		},
		"shown, and changed": {
			body: `{"enabled":{"value":true,"source":"environment"},"lockTtlMs":{"value":4000,"source":"environment"}}`,
			want: "true 4s -", version: "",
		},
		"a value that happens to be the environment's": {body: `{"lockTtlMs":3000}`, want: "- 3s -", version: ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change, err := environment.ParseChange(json.RawMessage(tt.body))
			if err != nil || describeChange(change.Own) != tt.want || change.Version != tt.version {
				t.Errorf("got %s, version %q, %v; want %s, version %q", describeChange(change.Own), change.Version, err, tt.want,
					tt.version)
			}
		})
	}
}

func TestParseChange_Reason(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"reason":" exams\nuntil May "}`:               "exams\nuntil May",
		`{"reason":null}`:                               "",
		`{"reason":"  "}`:                               "",
		`{"reason":"` + strings.Repeat("é", 500) + `"}`: strings.Repeat("é", 500),
	} {
		if change, err := environment.ParseChange(json.RawMessage(body)); err != nil || change.Reason != want {
			t.Errorf("%s: got %q, %v, want %q", body, change.Reason, err, want)
		}
	}
}

func TestParseChange_AcceptsAViewThatIsSentBack(t *testing.T) {
	t.Parallel()
	turnsOn := environment
	turnsOn.Enabled = true
	for value, e := range map[string]settings.Environment{
		`{"checkOutLockFeatureEnabled":true,"retryIntervals":[1,2]}`: environment,
		`{"lockTtl":300}`: turnsOn,
	} {
		b := (&storage{value: value, version: 1}).harness(e)
		ctx := inTenant(t, "diku")
		s, problem, err := b.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		before := s.View(problem)
		raw, err := json.Marshal(before)
		if err != nil {
			t.Fatal(err)
		}
		change, err := e.ParseChange(raw)
		if err != nil {
			t.Fatal(err)
		}
		s, err = b.Update(ctx, change)
		if err != nil {
			t.Fatal(err)
		}
		after := s.View(nil)
		before.Version = after.Version // a change without new values is one too
		if fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("%s: got  %v\nwant %v", value, after, before)
		}
	}
}

func TestParseChange_NamesWhatIsAllowed(t *testing.T) {
	t.Parallel()
	const (
		ttl   = "lockTtlMs must be an integer from 250 to 600000"
		waits = "retryIntervalsMs must be a list of at most 100 integers from 0 to 10000, together at most 25000"
	)
	tests := map[string]struct {
		body string
		want []string
	}{
		"no object": {`[]`, []string{"The body must be a JSON object"}},
		"null":      {`null`, []string{"The body must be a JSON object"}},
		"unknown": {
			`{"lockTtl":3000}`,
			[]string{"lockTtl is no setting; allowed are enabled, lockTtlMs, retryIntervalsMs, version, reason"},
		},
		"wrong case": {
			`{"Enabled":true}`,
			[]string{"Enabled is no setting; allowed are enabled, lockTtlMs, retryIntervalsMs, version, reason"},
		},
		"enabled as text":            {`{"enabled":"true"}`, []string{"enabled must be true or false"}},
		"enabled as number":          {`{"enabled":1}`, []string{"enabled must be true or false"}},
		"TTL too short":              {`{"lockTtlMs":249}`, []string{ttl}},
		"TTL too long":               {`{"lockTtlMs":600001}`, []string{ttl}},
		"TTL that wraps":             {`{"lockTtlMs":-9223372036854775000}`, []string{ttl}},
		"TTL wraps to 3 s":           {`{"lockTtlMs":18446744076710}`, []string{ttl}},
		"a wait that wraps":          {`{"retryIntervalsMs":[18446744073710]}`, []string{waits}},
		"a negative wait that wraps": {`{"retryIntervalsMs":[-18446744073209]}`, []string{waits}},
		"TTL huge":                   {`{"lockTtlMs":99999999999999999999}`, []string{ttl}},
		"TTL as text":                {`{"lockTtlMs":"3000"}`, []string{ttl}},
		"TTL with fraction":          {`{"lockTtlMs":3000.5}`, []string{ttl}},
		"waits as number":            {`{"retryIntervalsMs":500}`, []string{waits}},
		"wait too long":              {`{"retryIntervalsMs":[10001]}`, []string{waits}},
		"wait negative":              {`{"retryIntervalsMs":[-1]}`, []string{waits}},
		"wait null":                  {`{"retryIntervalsMs":[500,null]}`, []string{waits}},
		"waits too long":             {`{"retryIntervalsMs":[10000,10000,5001]}`, []string{waits}},
		"too many waits":             {`{"retryIntervalsMs":[` + strings.Repeat("0,", 100) + `0]}`, []string{waits}},
		"version as number":          {`{"version":7}`, []string{"version must be the version that was read, a string"}},
		"version empty":              {`{"version":""}`, []string{"version must be the version that was read, a string"}},
		"reason as number":           {`{"reason":7}`, []string{"reason must be a text"}},
		"reason too long": {
			`{"reason":"` + strings.Repeat("é", 501) + `"}`, []string{"reason must have at most 500 characters, not 501"},
		},
		"reason with a bell": {
			`{"reason":"a\u0007b"}`, []string{"reason must have no control characters but line breaks and tabs"},
		},
		"no value": {`{"enabled":{"valeu":true}}`, []string{"enabled must be true or false, or {value, source}"}},
		"no source": {
			`{"enabled":{"value":true,"source":7}}`, []string{"enabled must be true or false, or {value, source}"},
		},
		"wrong when shown": {`{"lockTtlMs":{"value":"x","source":"tenant"}}`, []string{ttl}},
		"everything at once": {
			`{"enabled":0,"lockTtlMs":0,"retryIntervalsMs":0,"x":0}`,
			[]string{
				"x is no setting; allowed are enabled, lockTtlMs, retryIntervalsMs, version, reason",
				"enabled must be true or false", waits, ttl,
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change, err := environment.ParseChange(json.RawMessage(tt.body))
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != fault.Invalid {
				t.Fatalf("got %s, %v, want it refused", describeChange(change.Own), err)
			}
			var got []string
			for _, d := range f.Details {
				got = append(got, d.Message)
			}
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestSettings_View(t *testing.T) {
	t.Parallel()
	e := environment
	e.MachinePatience, e.LongestAnswer = 20*time.Second, 30*time.Second
	v := e.Settings().View(errors.New("no good"))
	if v.LongestWaitMs != 1500 || v.Problem != "no good" || v.LockTTLMs.Value != 3000 ||
		v.MachinePatienceMs != 20_000 || v.LongestAnswerMs != 30_000 ||
		v.Enabled.Source != settings.FromEnvironment {
		t.Errorf("got %+v", v)
	}
	if one := (settings.Settings{TTL: time.Second}).View(nil); one.RetryIntervalsMs.Value == nil {
		t.Error("no waits are shown as null, want an empty list")
	}
}
