package staff_test

import (
	"encoding/json"
	"html"
	"maps"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

func TestFeaturePage_SaysWhatIsOnAndWhy(t *testing.T) {
	t.Parallel()
	broken := following()
	broken.Problem = "value has lockTTL <b>"
	tests := map[string]struct {
		l     *library
		words []string
		lacks []string
	}{
		"on": {
			l:     &library{view: own(true, 3000)},
			words: []string{"The lock is on", "Set by your library.", "Turn off …", "Go back to the default (off)"},
			lacks: []string{"Turn on …"},
		},
		"off": {
			l:     &library{view: own(false, 3000)},
			words: []string{"The lock is off", "more than the loan limit allows", "Turn on …"}, lacks: []string{"Turn off …"},
		},
		"the service's": {
			l: &library{view: following()}, words: []string{"The lock is off", "This is the default."},
			lacks: []string{"Go back to the default"},
		},
		"another instance's": {
			l: &library{view: followed()},
			words: []string{
				"The lock is on", "Another one turns the lock on, so this one takes it too.", "give all instances the same default",
				"Turn off …",
			},
			lacks: []string{"This is the default", "Go back to the default"},
		},
		"unusable settings": {
			l: &library{view: broken}, words: []string{"cannot be used, so others are in force", "value has lockTTL <b>"},
			lacks: []string{"lockTTL <b>x"},
		},
		"no figures": {
			l:     &library{view: own(true, 3000), noFigures: fault.New(fault.Unavailable, "away")},
			words: []string{"The lock is on"}, lacks: []string{"Right now"},
		},
		"figures": {
			l:     &library{view: own(true, 3000), figures: schemas.Figures{Waiting: 4, Held: 3}},
			words: []string{"Check-outs waiting 4", "Locks held 3"},
		},
		"no changes": {
			l: &library{view: own(true, 3000)}, words: []string{"No change of this library's settings is on record."},
		},
		"no note without a change": {l: &library{view: own(true, 3000)}, lacks: []string{"is on now"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := visit(t, tt.l).get(t, "/staff/diku/?done=%3Cb%3E")
			p.want(t, 200, tt.words...)
			p.lacks(t, append(tt.lacks, "<b>x")...)
			if strings.Contains(p.html, "<b>") {
				t.Error("the page has HTML of others")
			}
		})
	}
}

func TestSwitch_TurnsTheLockOnAndOff(t *testing.T) {
	t.Parallel()
	on, off := true, false
	ttl := 3 * time.Second
	const (
		atOnce = "It takes effect at once for every check-out that is not yet written, on all instances."
		soon   = "on all instances within two seconds. A check-out that began before may still wait for the lock."
	)
	tests := map[string]struct {
		to      string
		enabled *bool
		ask     string // what the question says
		effect  string
		note    string
	}{
		"on": {
			to: "on", enabled: &on, ask: "Turn the check-out lock on?", effect: atOnce, note: "The check-out lock is on now.",
		},
		"off": {
			to: "off", enabled: &off, ask: "Turn the check-out lock off?", effect: soon, note: "The check-out lock is off now.",
		},
		"default": {
			to: "default", ask: "The default is then in force, which is off now", effect: soon,
			note: "This library now follows the default.",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &library{view: own(tt.to == "off", 3000, 500)}
			v := visit(t, l)
			v.get(t, "/staff/diku/switch?to="+tt.to).want(t, 200, tt.ask, tt.effect+" No loan that exists is changed.")
			if len(l.changed) > 0 {
				t.Fatal("the question changed it")
			}
			p := v.post(t, "/staff/diku/switch", url.Values{
				"to": {tt.to}, "reason": {"  exams\r\nuntil May "}, "version": {"7"},
			})
			p.want(t, 303)
			if len(l.changed) != 1 {
				t.Fatalf("changed %d times, want once", len(l.changed))
			}
			got := l.changed[0]
			if !equal(got.Own.Enabled, tt.enabled) || !equal(got.Own.TTL, &ttl) || len(got.Own.Waits) != 1 ||
				got.Reason != "exams\nuntil May" {
				t.Errorf("changed to %+v, reason %q", got.Own, got.Reason)
			}
			v.get(t, p.header.Get("Location")).want(t, 200, tt.note)
		})
	}
}

func equal[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func TestSwitch_NeedsAReasonAndTheCurrentVersion(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		form   url.Values
		status int
		words  string
	}{
		"no reason": {form: url.Values{"to": {"on"}}, status: 422, words: "Say why, in a few words"},
		"a blank reason": {
			form: url.Values{"to": {"on"}, "reason": {" \t\n"}}, status: 422, words: "Say why, in a few words",
		},
		"a long reason": {
			form: url.Values{"to": {"on"}, "reason": {strings.Repeat("é", 501)}}, status: 422,
			words: "The reason must have at most 500 characters",
		},
		"another position": {
			form: url.Values{"to": {"<b>"}, "reason": {"x"}}, status: 400,
			words: "can be turned to on, off or default, not to <b>",
		},
		"another change came first": {
			form: url.Values{"to": {"on"}, "reason": {"x"}, "version": {"6"}}, status: 409,
			words: "The settings were changed since you opened the page. Nothing of yours was saved",
		},
		"the longest reason":   {form: url.Values{"to": {"on"}, "reason": {strings.Repeat("é", 500)}}, status: 303},
		"without what it read": {form: url.Values{"to": {"on"}, "reason": {"x"}}, status: 303},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &library{view: own(false, 3000)}
			p := visit(t, l).post(t, "/staff/diku/switch", tt.form)
			p.want(t, tt.status, tt.words)
			if changed := len(l.changed) == 1; changed != (tt.status == 303) {
				t.Errorf("changed: %v", changed)
			}
		})
	}
}

// After a refusal the question can be read in another language.
func TestSwitch_AsksInEachLanguageAfterARefusal(t *testing.T) {
	t.Parallel()
	action := regexp.MustCompile(`action="([^"]*/switch[^"]*)"`)
	for status, form := range map[int]url.Values{422: {}, 409: {"reason": {"x"}, "version": {"6"}}} {
		v := visit(t, &library{view: own(false, 3000)})
		question := v.get(t, "/staff/diku/switch?to=on")
		question.has(t, `name="version" value="7"`)
		form.Set("to", "on")
		refused := v.post(t, html.UnescapeString(action.FindStringSubmatch(question.html)[1]), form)
		refused.want(t, status)
		refused.has(t, `href="?language=de&amp;to=on"`)
		form.Del("reason")
		form.Set("version", "6") // that of the question stays, so that a change in between is seen
		v.post(t, "/staff/diku/switch", form).has(t, `name="version" value="6"`)
		v.get(t, "/staff/diku/switch?language=de&to=on").want(t, 200, "Die Verbuchungssperre einschalten?")
	}
}

func TestSettingsForms_SucceedWhenSentTwice(t *testing.T) {
	t.Parallel()
	broken := own(true, 3000, 500)
	broken.Problem = "lockTtl is text"
	turned := url.Values{"to": {"on"}}
	times := func(ttl, waits string) url.Values { return url.Values{"lockTtlMs": {ttl}, "retryIntervalsMs": {waits}} }
	tests := map[string]struct {
		page string
		form url.Values
		now  settings.View // after the first one, which raised the version to 7
		done bool
	}{
		"the switch":               {page: "/switch", form: turned, now: own(true, 3000, 500), done: true},
		"the switch, now off":      {page: "/switch", form: turned, now: own(false, 3000, 500)},
		"the switch, unusable now": {page: "/switch", form: turned, now: broken},
		"times": {
			page: "/timing", form: times("2500", "500 1000"), now: own(true, 2500, 500, 1000), done: true,
		},
		"the service's times": {page: "/timing", form: times("", ""), now: following(), done: true},
		"no waits":            {page: "/timing", form: times("2500", "none"), now: own(true, 2500), done: true},
		"another time to live": {
			page: "/timing", form: times("2501", "500 1000"), now: own(true, 2500, 500, 1000),
		},
		"other waits": {
			page: "/timing", form: times("2500", "1000 500"), now: own(true, 2500, 500, 1000),
		},
		"the same times, but the services": {page: "/timing", form: times("3000", "500 1000"), now: following()},
		"the service's, now its own":       {page: "/timing", form: times("", ""), now: own(true, 3000, 500, 1000)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &library{view: tt.now}
			form := url.Values{"reason": {"x"}, "version": {"6"}}
			maps.Copy(form, tt.form)
			p := visit(t, l).post(t, "/staff/diku"+tt.page, form)
			if tt.done {
				p.want(t, 303)
			} else {
				p.want(t, 409, "Another change came first")
			}
			if len(l.changed) != 0 {
				t.Errorf("changed again: %+v", l.changed)
			}
		})
	}
}

func TestFeaturePage_ShowsChangedTimesToTheMillisecond(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ before, after, want string }{
		"a small change": {
			before: `{"lockTtl":3000}`, after: `{"lockTtl":3040}`, want: "Lock expires after: 3.04 s, before that 3 s",
		},
		"unlike waits": {
			before: `{"retryIntervals":[1000,1000,1000,1000]}`, after: `{"retryIntervals":[1000,1010,1020,1030]}`,
			want: "Waits: 1 s, 1.01 s, 1.02 s, 1.03 s, before that 4 times 1 s",
		},
		"no waits at all": {
			before: `{}`, after: `{"retryIntervals":[]}`, want: "Waits: none, before that the default",
		},
		"three waits": {
			before: `{}`, after: `{"retryIntervals":[500,500,500]}`, want: "Waits: 500 ms, 500 ms, 500 ms, before that",
		},
		"nothing": {
			before: `{"lockTtl":3000,"retryIntervals":[500]}`, after: `{"retryIntervals":[500],"lockTtl":3000}`,
			want: "Saved the settings unchanged",
		},
		"FOLIO's words": {
			before: `{"noOfRetryAttempts":2,"retryInterval":500}`, after: `{"retryIntervals":[500,500]}`,
			want: "Saved the settings unchanged",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &library{view: own(true, 3000), changes: schemas.LockChanges{TotalRecords: 1, Changes: []schemas.LockChange{
				{Kind: schemas.ChangeSettings, Before: json.RawMessage(tt.before), After: json.RawMessage(tt.after)},
			}}}
			visit(t, l).get(t, "/staff/diku/").want(t, 200, tt.want)
		})
	}
}

func TestFeaturePage_PagesThroughTheChanges(t *testing.T) {
	t.Parallel()
	l := &library{view: own(true, 3000), changes: schemas.LockChanges{TotalRecords: 45, Changes: []schemas.LockChange{
		{
			Date: "2026-08-22T10:11:12.345+00:00", Kind: schemas.ChangeSettings, By: schemas.ChangedBy{
				UserID: actorID, Name: "Ada <script>",
			},
			Reason: "exams <script>", Before: json.RawMessage(`{"checkOutLockFeatureEnabled":false}`),
			After: json.RawMessage(`{"checkOutLockFeatureEnabled":true,"lockTtl":2500,"retryIntervals":[250,250,250,250]}`),
		},
		{
			Date: "soon", Kind: schemas.ChangeSettings, By: schemas.ChangedBy{UserID: actorID},
			Before: json.RawMessage(`{"retryIntervals":[]}`),
		},
		{Kind: schemas.ChangeSettings, After: json.RawMessage(`{"lockTtl":true}`)},
		{Kind: schemas.ChangeSettings, Before: json.RawMessage(`null`), After: json.RawMessage(`{}`)},
		{
			Kind: schemas.ChangeRelease, Reason: "stuck",
			Lock: &schemas.CheckoutLock{UserID: "patron-1234", Holder: "circ-2", AgeMs: 61_000},
		},
		{Kind: schemas.ChangeRelease, Lock: &schemas.CheckoutLock{}},
	}}}
	p := visit(t, l).get(t, "/staff/diku/?offset=20")
	p.want(t, 200,
		"22 Aug 2026", "Ada <script>", "exams <script>", "Lock: on, before that off",
		"Lock expires after: 2.5 s, before that the default",
		"Waits: 4 times 250 ms, before that the default", "soon", actorID,
		"Waits: the default, before that none",
		"not known", "Replaced settings that could not be used", "Saved the settings unchanged",
		"Released a lock by force patron ****234, held by circ-2 for 1 min 1 s",
		"patron no longer kept, held by an unnamed instance")
	p.lacks(t, "patron-1234", "<script>x")
	p.has(t, `href="/staff/diku/?offset=0" rel="prev"`, `href="/staff/diku/?offset=40" rel="next"`)
	if strings.Contains(p.html, "<script>") {
		t.Error("the page has HTML of others")
	}
	if l.offset != 20 {
		t.Errorf("asked from %d, want 20", l.offset)
	}
	for _, offset := range []string{"-1", "ten", "10001"} {
		visit(t, l).get(t, "/staff/diku/?offset="+offset).want(t, 422, "offset is "+offset+", allowed are 0 to 10000")
	}
}

// An older storage has settings, but no changes and no figures.
func TestFeaturePage_ShowsTheSwitchWithoutTheChanges(t *testing.T) {
	t.Parallel()
	unknown := fault.New(fault.Unavailable, "Storage was not reached")
	v := visit(t, &library{view: own(false, 3000), noChanges: unknown, noFigures: unknown})
	p := v.get(t, "/staff/diku/")
	p.want(t, 200, "The lock is off", "Turn on", "The changes could not be read just now.")
	p.lacks(t, "No change of", "There are no older changes")
	if !strings.Contains(v.logged.String(), "page shown without changes") {
		t.Errorf("logged %s", v.logged)
	}
}
