package sunbird

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// patience is the longest wait for a condition.
const patience = time.Minute

// webhook is a server that gets notices.
type webhook struct {
	*httptest.Server
	notices chan notice
	// answers are the statuses of the next answers, then 200. A status of 0 answers when
	// the caller has left.
	answers chan int
}

// path is the secret part of the webhook's address.
const path = "/hooks/T0P-SECRET"

func newWebhook(t *testing.T, answers ...int) *webhook {
	t.Helper()
	h := &webhook{notices: make(chan notice, 2*maxNotices), answers: make(chan int, len(answers))}
	for _, status := range answers {
		h.answers <- status
	}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n notice
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil || r.Method != http.MethodPost || r.URL.Path != path ||
			r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("got %s %s %v: %v", r.Method, r.URL, r.Header, err)
		}
		h.notices <- n
		status := http.StatusOK
		select {
		case status = <-h.answers:
		default:
		}
		if status == 0 {
			<-r.Context().Done()
			return
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(h.Close)
	return h
}

// next returns the next notice that was sent.
func (h *webhook) next(t *testing.T) notice {
	t.Helper()
	select {
	case n := <-h.notices:
		return n
	case <-time.After(patience):
		t.Fatal("no notice was sent")
		return notice{}
	}
}

// notifying returns a front that sends notices, and what stops the sending.
func notifying(t *testing.T, h *webhook) (f *harness, stop func()) {
	t.Helper()
	f = newHarness(t, func(c *Settings) { c.NoticeURL = h.URL + path })
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.server.notices.run(ctx)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return f, stop
}

// outcomes returns the counters of notices that are not 0.
func (f *harness) outcomes(t *testing.T) map[string]int {
	t.Helper()
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if n := int(m.GetCounter().GetValue()); n > 0 {
				counts[m.GetLabel()[0].GetValue()] = n
			}
		}
	}
	return counts
}

// awaitOutcomes waits until the counters have these values.
func (f *harness) awaitOutcomes(t *testing.T, want map[string]int) {
	t.Helper()
	end := time.Now().Add(patience)
	for tick := time.NewTicker(5 * time.Millisecond); !maps.Equal(f.outcomes(t), want); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("got %v, want %v", f.outcomes(t), want)
		}
	}
}

func TestNotices_NameTheRequest(t *testing.T) {
	t.Parallel()
	h := newWebhook(t)
	f, _ := notifying(t, h)
	grant := f.user("u1", "Ann", "d1").create("do_1").wants(t, "api.lock.create")
	f.user("u2", "Bo", "").ask("do_1", "please").wants(t, "api.lock.request")
	got := h.next(t)
	want := notice{
		ID: got.ID, ResourceID: "do_1", ResourceType: "content", LockedBy: "u1", ExpiresAt: grant.Result.ExpiresAt,
		RequestedBy: "u2", RequesterName: "Bo", Message: "please",
	}
	if got != want || got.ID == "" {
		t.Errorf("got %+v, want %+v", got, want)
	}
	f.user("u2", "Bo", "").ask("do_2", "please").refused(t, 400, "ERR_LOCK_REQUESTING_FAILED", "Resource is not locked")
	f.awaitOutcomes(t, map[string]int{"delivered": 1})
}

func TestNotices_AreRepeatedUntilTheyAreTaken(t *testing.T) {
	t.Parallel()
	h := newWebhook(t, 503, 429)
	f, _ := notifying(t, h)
	f.user("u1", "Ann", "d1").create("do_1").wants(t, "api.lock.create")
	f.user("u2", "Bo", "").ask("do_1", "please").wants(t, "api.lock.request")
	first := h.next(t)
	for range 2 {
		if again := h.next(t); again != first {
			t.Errorf("the repeat is %+v, want %+v", again, first)
		}
	}
	f.awaitOutcomes(t, map[string]int{"delivered": 1})
}

func TestNotices_FailWithoutEffectOnTheRequest(t *testing.T) {
	t.Parallel()
	h := newWebhook(t, 400, 302)
	f, stop := notifying(t, h)
	f.user("u1", "Ann", "d1").create("do_1").wants(t, "api.lock.create")
	for _, by := range []string{"u2", "u3"} {
		f.user(by, "Bo", "").ask("do_1", "a private message").wants(t, "api.lock.request")
		if got := h.next(t); got.RequestedBy != by {
			t.Errorf("a refused notice is sent again: %+v", got)
		}
	}
	f.awaitOutcomes(t, map[string]int{"failed": 2})
	h.Close()
	f.user("u4", "Bo", "").ask("do_1", "a private message").wants(t, "api.lock.request")
	stop()
	if got := f.outcomes(t); got["dropped"] != 1 {
		t.Errorf("got %v, want one that a stop drops", got)
	}
	for _, secret := range []string{path, "private", "u3"} {
		if strings.Contains(f.log.String(), secret) {
			t.Errorf("the log has %q: %s", secret, f.log)
		}
	}
	if !strings.Contains(f.log.String(), "the webhook answered 400") {
		t.Errorf("the log does not say why: %s", f.log)
	}
}

func TestNotices_AreBoundedAndEndWithTheService(t *testing.T) {
	t.Parallel()
	h := newWebhook(t, 0)
	f, stop := notifying(t, h)
	f.user("u1", "Ann", "d1").create("do_1").wants(t, "api.lock.create")
	asker := f.user("u2", "Bo", "")
	asker.ask("do_1", "please").wants(t, "api.lock.request")
	h.next(t) // it hangs, so the others wait
	for range maxNotices + 2 {
		f.server.notices.add(t.Context(), notice{})
	}
	asker.ask("do_1", "please").wants(t, "api.lock.request")
	if got := f.outcomes(t); got["dropped"] != 3 {
		t.Errorf("got %v, want 3 without room", got)
	}
	stop()
	if got := f.outcomes(t); got["dropped"] != 3+1+maxNotices || len(got) != 1 {
		t.Errorf("got %v, want all dropped", got)
	}
}
