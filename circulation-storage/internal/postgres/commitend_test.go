package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas/fault"
)

// ends are what an observer of commits received.
type ends struct {
	ended    []string // kind and outcome
	unfenced int
	released []uuid.UUID // patrons
	expired  []int
}

// Ended implements commit.Observer.
func (e *ends) Ended(kind commit.Kind, o commit.Outcome, took time.Duration) {
	e.ended = append(e.ended, string(kind)+" "+string(o))
	if took <= 0 {
		e.ended = append(e.ended, took.String())
	}
}

// LentUnfenced implements commit.Observer.
func (e *ends) LentUnfenced() { e.unfenced++ }

// LockReleased implements commit.Observer.
func (e *ends) LockReleased(_ context.Context, userID uuid.UUID) {
	e.released = append(e.released, userID)
}

// RequestsExpired implements commit.Observer.
func (e *ends) RequestsExpired(n int) { e.expired = append(e.expired, n) }

// observed is a desk whose commits report their ends.
func (l harness) observed() (harness, *ends) {
	e := &ends{}
	l.commits = l.commits.ObservedBy(e)
	return l, e
}

// checkOut is send with the desk's own observer.
func (l harness) checkOut(c lending) error {
	l.t.Helper()
	parsed, err := commit.ParseCheckOut(c.body())
	if err != nil {
		l.t.Fatal(err)
	}
	_, err = l.commits.CheckOut(l.ctx(), parsed)
	return err
}

// wantEnds compares the reports without regard to their order.
func (e *ends) wantEnds(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	if slices.Sort(e.ended); !slices.Equal(e.ended, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(e.ended, "\n"), strings.Join(want, "\n"))
	}
}

// Commits of what does not exist are refused.
func TestCommits_ReportTheirKind(t *testing.T) {
	t.Parallel()
	l, got := newHarness(t).observed()
	c := l.withoutLock(uuid.New())
	nowhere := title{instance: uuid.New(), holdings: uuid.New()}
	r := request{id: uuid.New(), by: uuid.New(), of: nowhere, item: c.item, position: 1}
	_, renewing := l.renew(renewalOf(c))
	_, placing := l.place(r, "Hold", false)
	_, moving := l.move(r, uuid.New(), "Hold", false)
	_, ordering := l.orderQueue(fmt.Sprintf(`"itemId":%q`, r.item), []request{r}, 1)
	for i, err := range []error{
		l.checkOut(c), l.closeLoan(uuid.New(), c, 1, ""), renewing,
		l.changeLoan(uuid.New(), c.loan, "patronInfoAdded", `,"comment":"x"`), l.replaceLoan(uuid.New(), c, ""),
		placing, l.changeRequest(r, "", "", ""), l.cancel(r, false), l.changeRequest(r, `,"delete":true`, "", ""), moving,
		ordering,
	} {
		if !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.NotFound) {
			t.Errorf("commit %d: got %v, want a refusal", i, err)
		}
	}
	var want []string
	for _, kind := range commit.Kinds() {
		want = append(want, string(kind)+" refused")
	}
	got.wantEnds(t, want...)
}

func TestCommits_ReportRepeats(t *testing.T) {
	t.Parallel()
	l, got := newHarness(t).observed()
	c, id := l.lent(), uuid.New()
	for range 2 {
		for _, err := range []error{
			l.checkOut(c), l.changeLoan(id, c.loan, "patronInfoAdded", `,"comment":"x"`), l.closeLoan(c.user, c, 2, ""),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	}
	got.wantEnds(t, "check-out repeated", "check-out repeated", "loan-change committed", "loan-change committed",
		"check-in committed", "check-in repeated")
}

func TestCommits_ReportReleasesAndLoansWithoutAFence(t *testing.T) {
	t.Parallel()
	l, got := newHarness(t).observed()
	released := l.withLock(uuid.New(), l.addItem("Available", ""))
	kept := l.withLock(uuid.New(), l.addItem("Available", ""))
	released.release = true
	refused := l.withLock(uuid.New(), uuid.New())
	refused.release = true
	if err := l.checkOut(refused); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
	for range 2 { // the second time is a repeat
		if err := errors.Join(l.checkOut(released), l.checkOut(kept)); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(got.released, []uuid.UUID{released.user}) || got.unfenced != 0 {
		t.Errorf("got the releases %v and %d loans without a fence, want %s and none",
			got.released, got.unfenced, released.user)
	}
	staff := fmt.Appendf(nil, `{"loan":{"id":%q,"userId":%q,"itemId":%q,"loanDate":"2026-03-04T05:06:00Z",
		"action":"checkedout"},"itemVersion":1,"unfenced":true}`, uuid.New(), uuid.New(), l.addItem("Available", ""))
	parsed, err := commit.ParseCheckOut(staff)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := l.commits.CheckOut(l.ctx(), parsed); err != nil {
			t.Error(err)
		}
	}
	if got.unfenced != 1 {
		t.Errorf("got %d loans without a fence, want 1: a repeat is none", got.unfenced)
	}
}

func TestExpireRequests_ReportsHowManyWereClosed(t *testing.T) {
	t.Parallel()
	l, got := newHarness(t).observed()
	of := l.addTitle(1)
	for _, r := range l.queue(of, of.copies[0], uuid.New(), uuid.New()) {
		l.expire(r, "Open - Not yet filled", -1)
	}
	l.expireAll(2)
	l.expireAll(0)
	if !slices.Equal(got.expired, []int{2, 0}) || len(got.ended) != 0 {
		t.Errorf("got %v closed and the ends %v, want 2, then none, and no ends", got.expired, got.ended)
	}
}
