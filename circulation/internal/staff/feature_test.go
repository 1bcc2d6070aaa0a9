package staff_test

import (
	"encoding/json"
	"maps"
	"net/url"
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
		"on":            {&library{view: own(true, 3000)}, []string{"The lock is on", "set for this library", "Turn off …", "Follow the service's own setting (off)"}, []string{"Turn on …"}},
		"off":           {&library{view: own(false, 3000)}, []string{"The lock is off", "more than the loan limit allows", "Turn on …"}, []string{"Turn off …"}},
		"the service's": {&library{view: following()}, []string{"The lock is off", "This is the service's own setting."}, []string{"Follow the service"}},
		"another instance's": {
			&library{view: followed()},
			[]string{"The lock is on", "Another one turns the lock on, so this one takes it too.", "CHECKOUT_LOCK_FEATURE_ENABLED", "Turn off …"},
			[]string{"This is the service's own setting", "Follow the service"},
		},
		"what cannot be used":  {&library{view: broken}, []string{"cannot be used, so others are in force", "value has lockTTL <b>"}, []string{"lockTTL <b>x"}},
		"no figures":           {&library{view: own(true, 3000), noFigures: fault.New(fault.Unavailable, "away")}, []string{"The lock is on"}, []string{"Right now"}},
		"figures":              {&library{view: own(true, 3000), figures: schemas.Figures{Waiting: 4, Held: 3}}, []string{"Check-outs waiting 4", "Locks held 3"}, nil},
		"no changes":           {&library{view: own(true, 3000)}, []string{"No change of this library's settings is on record."}, nil},
		"a note for no reason": {&library{view: own(true, 3000)}, nil, []string{"is on now"}},
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
		soon   = "It takes effect on all instances within two seconds. Until then a check-out may still wait for the lock."
	)
	tests := map[string]struct {
		to      string
		enabled *bool
		ask     string // what the question says
		effect  string
		note    string
	}{
		"on":      {"on", &on, "Turn the check-out lock on?", atOnce, "The check-out lock is on now."},
		"off":     {"off", &off, "Turn the check-out lock off?", soon, "The check-out lock is off now."},
		"default": {"default", nil, "The service's own setting is then in force, which is off now", soon, "This library now follows the service's own setting."},
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
			p := v.post(t, "/staff/diku/switch", url.Values{"to": {tt.to}, "reason": {"  exams\r\nuntil May "}, "version": {"7"}})
			p.want(t, 303)
			if len(l.changed) != 1 {
				t.Fatalf("changed %d times, want once", len(l.changed))
			}
			got := l.changed[0]
			if !equal(got.Enabled, tt.enabled) || !equal(got.TTL, &ttl) || len(got.Waits) != 1 || got.Reason != "exams\nuntil May" {
				t.Errorf("changed to %+v, reason %q", got.LockSettings, got.Reason)
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
		"no reason":                 {url.Values{"to": {"on"}}, 422, "Say why, in a few words"},
		"a blank reason":            {url.Values{"to": {"on"}, "reason": {" \t\n"}}, 422, "Say why, in a few words"},
		"a long reason":             {url.Values{"to": {"on"}, "reason": {strings.Repeat("é", 501)}}, 422, "The reason must have at most 500 characters"},
		"another position":          {url.Values{"to": {"<b>"}, "reason": {"x"}}, 400, "can be turned to on, off or default, not to <b>"},
		"another change came first": {url.Values{"to": {"on"}, "reason": {"x"}, "version": {"6"}}, 409, "The settings were changed since you opened the page. Nothing of yours was saved"},
		"the longest reason":        {url.Values{"to": {"on"}, "reason": {strings.Repeat("é", 500)}}, 303, ""},
		"without what it read":      {url.Values{"to": {"on"}, "reason": {"x"}}, 303, ""},
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
		"the switch":                       {"/switch", turned, own(true, 3000, 500), true},
		"the switch, now off":              {"/switch", turned, own(false, 3000, 500), false},
		"the switch, unusable now":         {"/switch", turned, broken, false},
		"times":                            {"/timing", times("2500", "500 1000"), own(true, 2500, 500, 1000), true},
		"the service's times":              {"/timing", times("", ""), following(), true},
		"no waits":                         {"/timing", times("2500", "none"), own(true, 2500), true},
		"another time to live":             {"/timing", times("2501", "500 1000"), own(true, 2500, 500, 1000), false},
		"other waits":                      {"/timing", times("2500", "1000 500"), own(true, 2500, 500, 1000), false},
		"the same times, but the services": {"/timing", times("3000", "500 1000"), following(), false},
		"the service's, now its own":       {"/timing", times("", ""), own(true, 3000, 500, 1000), false},
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
		"a small change":  {`{"lockTtl":3000}`, `{"lockTtl":3040}`, "Time to live: 3040 ms, before that 3000 ms"},
		"unlike waits":    {`{"retryIntervals":[1000,1000,1000,1000]}`, `{"retryIntervals":[1000,1010,1020,1030]}`, "Waits: 1000, 1010, 1020, 1030 ms, before that 4 times 1000 ms"},
		"no waits at all": {`{}`, `{"retryIntervals":[]}`, "Waits: none, before that the service's own setting"},
		"three waits":     {`{}`, `{"retryIntervals":[500,500,500]}`, "Waits: 500, 500, 500 ms, before that"},
		"nothing":         {`{"lockTtl":3000,"retryIntervals":[500]}`, `{"retryIntervals":[500],"lockTtl":3000}`, "Saved the settings unchanged"},
		"FOLIO's words":   {`{"noOfRetryAttempts":2,"retryInterval":500}`, `{"retryIntervals":[500,500]}`, "Saved the settings unchanged"},
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
			Date: "2026-08-22T10:11:12.345+00:00", Kind: schemas.ChangeSettings, By: schemas.ChangedBy{UserID: actorID, Name: "Ada <script>"},
			Reason: "exams <script>", Before: json.RawMessage(`{"checkOutLockFeatureEnabled":false}`),
			After: json.RawMessage(`{"checkOutLockFeatureEnabled":true,"lockTtl":2500,"retryIntervals":[250,250,250,250]}`),
		},
		{Date: "soon", Kind: schemas.ChangeSettings, By: schemas.ChangedBy{UserID: actorID}, Before: json.RawMessage(`{"retryIntervals":[]}`)},
		{Kind: schemas.ChangeSettings, After: json.RawMessage(`{"lockTtl":true}`)},
		{Kind: schemas.ChangeSettings, Before: json.RawMessage(`null`), After: json.RawMessage(`{}`)},
		{Kind: schemas.ChangeRelease, Reason: "stuck", Lock: &schemas.CheckoutLock{UserID: "patron-1234", Holder: "circ-2", AgeMs: 61_000}},
		{Kind: schemas.ChangeRelease, Lock: &schemas.CheckoutLock{}},
	}}}
	p := visit(t, l).get(t, "/staff/diku/?offset=20")
	p.want(t, 200,
		"22 Aug 2026", "Ada <script>", "exams <script>", "Lock: on, before that off", "Time to live: 2500 ms, before that the service's own setting",
		"Waits: 4 times 250 ms, before that the service's own setting", "soon", actorID, "Waits: the service's own setting, before that none",
		"not known", "Replaced settings that could not be used", "Saved the settings unchanged",
		"Released a lock by force patron ****234, held by circ-2 for 1 min 1 s", "patron no longer kept, held by an unnamed instance")
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

// A storage of the version before knows neither changes nor figures, but settings.
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
