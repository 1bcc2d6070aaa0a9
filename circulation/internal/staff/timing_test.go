package staff_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas/fault"
	"checkoutlock/web/auth"
)

func TestTimingPage_ShowsWhatIsInForce(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		view  settings.View
		parts []string
		words []string
	}{
		"the library's": {
			view:  own(true, 2500, 500, 500, 1000),
			parts: []string{`value="2.5 s"`, `>500 ms, 500 ms, 1 s</textarea>`},
			words: []string{
				"In force: 2.5 s, set by your library.", "which is 3 s",
				"In force: 500 ms, 500 ms, 1 s, set by your library.", "the default, which is 500 ms, 1 s.",
			},
		},
		"no waits": {
			view: own(true, 2500), parts: []string{`>none</textarea>`}, words: []string{"In force: none, set by your library."},
		},
		"the service's": {
			view: following(), parts: []string{`name="lockTtlMs" value=""`, `></textarea>`},
			words: []string{"In force: 3 s, the default.", "The lock is off, so nothing here is in use."},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := visit(t, &library{view: tt.view}).get(t, "/staff/diku/timing")
			p.want(t, 200, append(tt.words, "A time from 250 ms to 600 s",
				"At most 100 times from 0 s to 10 s, together at most 25 s")...)
			p.has(t, append(tt.parts, `name="version" value="7"`, `data-sums="/staff/diku/timing/sums" data-target="sums"`,
				`<div id="sums" role="status">`)...)
			p.lacks(t, `id="problems"`, "aria-invalid")
		})
	}
}

func TestTimingPage_ShowsTimesWithoutThePermissionToChange(t *testing.T) {
	t.Parallel()
	view := following()
	view.LockTTLMs.Source = settings.FromTenant
	p := visitAs(t, &library{view: view}, auth.Gateway, granted(admin.MaySeeSettings)).get(t, "/staff/diku/timing")
	p.want(t, 200, "The lock is off, so nothing here is in use.", "You may look at this, but not change it.",
		"Lock expires after 3 s, set by your library Waits between tries 500 ms, 1 s, the default",
		"It waits at most 1.5 s")
	p.lacks(t, "Empty means", "What you set", "in the form", "<form", "<input", "<textarea")
}

func TestTimingPage_SaysThatStoredSettingsAreNotInForce(t *testing.T) {
	t.Parallel()
	broken := own(true, 3000)
	broken.Problem = "lockTtl is text <b>"
	p := visit(t, &library{view: broken}).get(t, "/staff/diku/timing")
	p.want(t, 200, "The settings that are stored for this library cannot be used, so others are in force. lockTtl is "+
		"text <b>")
	p.has(t, "text &lt;b&gt;")
}

// summarize writes what a change sets.
func summarize(c settings.Change) string {
	ttl, waits := "-", "-"
	if c.Own.TTL != nil {
		ttl = c.Own.TTL.String()
	}
	if c.Own.Waits != nil {
		waits = fmt.Sprint(c.Own.Waits)
	}
	return ttl + " " + waits
}

func TestTimingPage_SavesTheTypedTimes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ ttl, waits, want string }{
		"both":          {ttl: "2500", waits: "500, 500, 1000", want: "2.5s [500ms 500ms 1s]"},
		"spaces":        {ttl: " 2500 ", waits: " 500  500\t1000\r\n", want: "2.5s [500ms 500ms 1s]"},
		"bars":          {ttl: "2500", waits: "500|500;1000", want: "2.5s [500ms 500ms 1s]"},
		"no waits":      {ttl: "250", waits: "None", want: "250ms []"},
		"units":         {ttl: "3 s", waits: "0.5s 500 ms,1.25 S", want: "3s [500ms 500ms 1.25s]"},
		"as shown":      {ttl: "2.5 s", waits: "500 ms, 500 ms, 1 s", want: "2.5s [500ms 500ms 1s]"},
		"the service's": {want: "- -"},
		"one of them":   {waits: "0", want: "- [0s]"},
		// the library's own now, whatever the service does
		"the service's by": {ttl: "3000", waits: "500 1000", want: "3s [500ms 1s]"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &library{view: own(true, 4000, 1, 2)}
			v := visit(t, l)
			p := v.post(t, "/staff/diku/timing", url.Values{
				"lockTtlMs": {tt.ttl}, "retryIntervalsMs": {tt.waits}, "reason": {" slow gates "}, "version": {"7"},
			})
			p.want(t, 303)
			if len(l.changed) != 1 {
				t.Fatalf("changed %d times, want once", len(l.changed))
			}
			c := l.changed[0]
			if got := summarize(c); got != tt.want || c.Reason != "slow gates" || c.Own.Enabled == nil || !*c.Own.Enabled {
				t.Errorf("got %s, reason %q, enabled %v; want %s and that it stays on", got, c.Reason, c.Own.Enabled, tt.want)
			}
			v.get(t, p.header.Get("Location")).want(t, 200, "The new times are saved.")
		})
	}
}

func TestTimingPage_KeepsTheSwitch(t *testing.T) {
	t.Parallel()
	l := &library{view: following()}
	visit(t, l).post(t, "/staff/diku/timing", url.Values{"lockTtlMs": {"4000"}, "reason": {"x"}}).want(t, 303)
	if len(l.changed) != 1 || l.changed[0].Own.Enabled != nil {
		t.Errorf("got %+v, want a change that does not set whether the lock is on", l.changed)
	}
}

func TestTimingPage_RefusesUnusableTimesAtTheirField(t *testing.T) {
	t.Parallel()
	const (
		ttl   = "cannot be used. Type a time from 250 ms to 600 s, such as 3 s, or leave the field empty."
		waits = "cannot be used. Type at most 100 times from 0 s to 10 s, together at most 25 s, or the word none, or " +
			"leave the field empty."
		reason = "Say why, in a few words"
	)
	tests := map[string]struct {
		ttl, waits, reason string
		wrong              []string // ids of fields
		words              []string
	}{
		"a short TTL": {ttl: "249", waits: "500", reason: "x", wrong: []string{"lockTtlMs"}, words: []string{"“249” " + ttl}},
		"a long TTL":  {ttl: "600001", waits: "500", reason: "x", wrong: []string{"lockTtlMs"}, words: []string{ttl}},
		"a TTL in words": {
			ttl: "<script>", waits: "500", reason: "x", wrong: []string{"lockTtlMs"}, words: []string{ttl},
		},
		"a huge TTL": {
			ttl: "99999999999999999999", waits: "500", reason: "x", wrong: []string{"lockTtlMs"}, words: []string{ttl},
		},
		"a fraction": {ttl: "2500.5", waits: "500", reason: "x", wrong: []string{"lockTtlMs"}, words: []string{ttl}},
		"a thousand": {
			ttl: "2500", waits: "1,000", reason: "x", wrong: []string{"retryIntervalsMs"}, words: []string{waits},
		},
		"a comma that may group digits": {
			ttl: "3 s", waits: "1 s, 1,000 s", reason: "x", wrong: []string{"retryIntervalsMs"},
			words: []string{"“1,000 s” " + waits},
		},
		"a long wait": {
			ttl: "2500", waits: "10001", reason: "x", wrong: []string{"retryIntervalsMs"}, words: []string{waits},
		},
		"waits in words": {
			ttl: "2500", waits: "500, soon", reason: "x", wrong: []string{"retryIntervalsMs"},
			words: []string{"“soon” " + waits},
		},
		"only separators": {
			ttl: "2500", waits: ",;|", reason: "x", wrong: []string{"retryIntervalsMs"}, words: []string{waits},
		},
		"too long together": {
			ttl: "2500", waits: "10000 10000 5001", reason: "x", wrong: []string{"retryIntervalsMs"}, words: []string{waits},
		},
		"too many": {
			ttl: "2500", waits: strings.Repeat("1 ", 101), reason: "x", wrong: []string{"retryIntervalsMs"},
			words: []string{waits},
		},
		"no reason": {ttl: "2500", waits: "500", reason: " ", wrong: []string{"reason"}, words: []string{reason}},
		"a control": {
			ttl: "2500", waits: "500", reason: "a\x01b", wrong: []string{"reason"},
			words: []string{"The reason must have no control characters"},
		},
		"everything at once": {
			ttl: "1", waits: "x", wrong: []string{"lockTtlMs", "retryIntervalsMs", "reason"},
			words: []string{ttl, waits, reason},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &library{view: own(true, 4000, 1, 2)}
			p := visit(t, l).post(t, "/staff/diku/timing", url.Values{
				"lockTtlMs": {tt.ttl}, "retryIntervalsMs": {tt.waits}, "reason": {tt.reason}, "version": {"6½"},
			})
			p.want(t, 422, append(tt.words, "Please look at this again")...)
			p.has(t, `id="problems" role="group"`, `name="version" value="6½"`) // the one that was read first
			for _, id := range []string{"lockTtlMs", "retryIntervalsMs", "reason"} {
				wrong := strings.Contains(strings.Join(tt.wrong, " "), id)
				if link := strings.Contains(p.html, `<a href="#`+id+`">`); link != wrong {
					t.Errorf("a link to %s: %v, want %v", id, link, wrong)
				}
				if said := strings.Contains(p.html, id+`-error" aria-invalid="true"`); said != wrong {
					t.Errorf("%s marked as wrong: %v, want %v", id, said, wrong)
				}
			}
			if typed := strings.TrimSpace(tt.ttl); typed != "<script>" {
				p.has(t, `value="`+typed+`"`)
			}
			if strings.Contains(p.html, "<script>") {
				t.Error("the page has HTML of others")
			}
			if len(l.changed) > 0 {
				t.Errorf("changed %+v", l.changed)
			}
		})
	}
}

func TestTimingPage_RefusesAnOldVersion(t *testing.T) {
	t.Parallel()
	l := &library{view: own(true, 4000)}
	p := visit(t, l).post(t, "/staff/diku/timing", url.Values{"lockTtlMs": {"2500"}, "reason": {"x"}, "version": {"6"}})
	p.want(t, 409, "Another change came first", "Nothing of yours was saved")
	l.refusal = fault.New(fault.Unavailable, "Storage could not be reached")
	visit(t, l).post(t, "/staff/diku/timing", url.Values{"lockTtlMs": {"2500"}, "reason": {"x"}}).want(t, 503,
		"Storage could not be reached")
	if len(l.changed) > 0 {
		t.Errorf("changed %+v", l.changed)
	}
}

func TestTimingPage_SaysWhatTimesMean(t *testing.T) {
	t.Parallel()
	const overtakes, impatient = "it can overtake a check-out that is slow but alive", "but the library's machines give " +
		"up after 10 s."
	tests := map[string]struct {
		ttl, waits string
		words      []string
		lacks      []string
	}{
		"calm": {
			ttl: "3000", waits: "500, 1000",
			words: []string{"asks for the lock 3 times", "It waits at most 1.5 s", "its patron waits at most 3 s"},
			lacks: []string{overtakes, impatient},
		},
		"no waits": {
			waits: "none", words: []string{"asks for the lock 1 time ", "It waits at most 0 ms", "its patron waits at most 3 s"},
			lacks: []string{overtakes, impatient},
		},
		"the service's":    {words: []string{"3 times", "1.5 s"}, lacks: []string{overtakes, impatient}},
		"as long as it is": {ttl: "1500", waits: "1500", words: []string{"1.5 s"}, lacks: []string{overtakes, impatient}},
		"longer than TTL": {
			ttl: "1500", waits: "1501", words: []string{overtakes, "(1.501 s)", "(1.5 s)", "That is safe"},
			lacks: []string{impatient},
		},
		"as long as patient": {
			ttl: "60000", waits: "10000", words: []string{"It waits at most 10 s"}, lacks: []string{impatient},
		},
		"impatient": {
			ttl: "60000", waits: "10000 1", words: []string{impatient, "may wait 10.001 s"}, lacks: []string{overtakes},
		},
		"both": {ttl: "3000", waits: "10000 1", words: []string{overtakes, impatient}},
		"of no use": {
			ttl: "1", waits: "x",
			words: []string{"The times cannot be used as they are. Look at Lock expires after and Waits between tries."},
			lacks: []string{"It waits"},
		},
		"HTML": {ttl: "<script>", words: []string{"cannot be used"}, lacks: []string{"<script>"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &library{view: own(true, 4000)}
			v := visit(t, l)
			typed := url.Values{"lockTtlMs": {tt.ttl}, "retryIntervalsMs": {tt.waits}}
			part := v.get(t, "/staff/diku/timing/sums?"+typed.Encode())
			part.want(t, 200, tt.words...)
			part.lacks(t, append(tt.lacks, "<html", "<form")...)

			typed.Set("do", "sums") // the same without a script
			whole := v.post(t, "/staff/diku/timing", typed)
			status := 200
			if strings.Contains(part.text, "cannot be used") {
				status = 422
			}
			whole.want(t, status, tt.words...)
			whole.lacks(t, "Say why", "<script>x")
			if len(l.changed) > 0 {
				t.Errorf("changed %+v", l.changed)
			}
		})
	}
}
