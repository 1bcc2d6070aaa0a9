package staff_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/drill"
	"checkoutlock/schemas/fault"
	"checkoutlock/web/auth"
)

// drills is a hand-made Drills.
type drills struct {
	result drill.Result
	err    error
	runs   int
}

func (d *drills) Run(context.Context) (drill.Result, error) {
	d.runs++
	return d.result, d.err
}

func TestDrillPage_SaysWhatHappened(t *testing.T) {
	t.Parallel()
	limited := []drill.Reason{{Code: "ITEM_LIMIT_LOAN_TYPE", Count: 5}}
	held := drill.Round{Lent: 15, Refused: 5, Longest: 167 * time.Millisecond, Reasons: limited}
	for _, tt := range []struct {
		name   string
		result drill.Result
		err    error
		status int
		want   string
	}{
		{
			name: "beyond the limit without the lock", result: drill.Result{Off: drill.Round{Lent: 18}, On: held}, status: 200,
			want: "With the lock off, 18 items were lent: 3 more than the limit allows. " +
				"With the lock on, 15 items were lent: as many as the limit allows, and no more.",
		},
		{name: "luck", result: drill.Result{Off: held, On: held}, status: 200, want: "so the limit held by luck"},
		{
			name:   "some failed without the lock",
			result: drill.Result{Off: drill.Round{Lent: 15, Refused: 4, Failed: 1}, On: held}, status: 200,
			want: "With the lock off, 15 items were lent. Not all check-outs were decided; see the reasons. With the lock on",
		},
		{
			name: "all failed without the lock", result: drill.Result{Off: drill.Round{Failed: 20}, On: held}, status: 200,
			want: "With the lock off, 0 items were lent. Not all check-outs were decided; see the reasons.",
		},
		{
			name: "all failed", result: drill.Result{On: drill.Round{Failed: 20}}, status: 200,
			want: "The limit held, but not all check-outs were decided",
		},
		{
			name: "the limit does not hold", result: drill.Result{On: drill.Round{Lent: 16}}, status: 200,
			want: "With the lock on, 16 items were lent: the limit did not hold. Call your support.",
		},
		{
			name: "too soon", err: fault.New(fault.TooManyTries, "wait"), status: http.StatusTooManyRequests,
			want: "A drill runs at this instance, or has just ended.",
		},
		{
			name: "another drill", err: fault.New(fault.Conflict, "disturbed"), status: http.StatusConflict,
			want: "Another drill ran at the same time",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := &library{drills: &drills{result: tt.result, err: tt.err}}
			visit(t, l).post(t, "/staff/diku/drill", url.Values{}).want(t, tt.status, tt.want)
		})
	}
}

func TestDrillPage_NeedsItsPermissionAndTheFormsToken(t *testing.T) {
	t.Parallel()
	d := &drills{}
	l := &library{view: own(true, 3000), drills: d}
	reader := visitAs(t, l, auth.Gateway, granted(admin.MaySeeSettings, admin.MayChangeSettings))
	reader.get(t, "/staff/diku/").lacks(t, "/drill")
	reader.post(t, "/staff/diku/drill", url.Values{}).want(t, http.StatusForbidden, admin.MayDrill)
	v := visitAs(t, l, auth.Gateway, granted(admin.MaySeeSettings, admin.MayDrill))
	v.get(t, "/staff/diku/").has(t, `/staff/diku/drill"`)
	v.postBare(t, "/staff/diku/drill", url.Values{}).want(t, http.StatusForbidden, "This form did not come from a page")
	if d.runs > 0 {
		t.Fatalf("%d drills ran", d.runs)
	}
	v.post(t, "/staff/diku/drill", url.Values{}).want(t, http.StatusOK)
	if d.runs != 1 {
		t.Errorf("%d drills ran, want 1", d.runs)
	}
}

func TestDrillPage_IsOffWithoutDrills(t *testing.T) {
	t.Parallel()
	v := visit(t, &library{view: own(true, 3000)})
	v.get(t, "/staff/diku/").lacks(t, "/drill")
	v.get(t, "/staff/diku/drill").want(t, http.StatusNotFound, "your operator has turned them off")
	v.post(t, "/staff/diku/drill", url.Values{}).want(t, http.StatusNotFound)
}
