package checkout_test

import (
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas/fault"
)

func TestADryRunNamesThePoliciesAndLendsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld()
	service := w.service()
	service.Locker, service.Committer, service.Settings, service.Observer = nil, nil, nil, nil // would panic
	got, err := service.DryRun(t.Context(), checkout.DryRunRequest{ItemBarcode: "book", UserBarcode: "ann"})
	want := checkout.DryRun{LoanPolicyID: librarytest.ThreeID, OverdueFinePolicyID: "o1", LostItemPolicyID: "i1", PatronNoticePolicyID: "n1"}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestADryRunIsRefusedForWhatACheckOutIs(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare func(*world, *checkout.DryRunRequest)
		want    []string
	}{
		"nothing is known": {
			func(_ *world, r *checkout.DryRunRequest) {
				*r = checkout.DryRunRequest{ItemBarcode: "x", UserBarcode: "x"}
			},
			[]string{"Could not find user with matching barcode", "No item with barcode x could be found"},
		},
		"limit reached": {
			func(w *world, _ *checkout.DryRunRequest) { w.open = []int{3} },
			[]string{"Patron has reached maximum limit of 3 items for material type"},
		},
		"a proxy that is unknown": {
			func(_ *world, r *checkout.DryRunRequest) { r.ProxyUserBarcode = "x" },
			[]string{"Could not find user with matching barcode"},
		},
		"an override without permission": {
			func(_ *world, r *checkout.DryRunRequest) { r.OverrideBlocks.PatronBlock = &struct{}{} },
			[]string{"Insufficient override permissions"},
		},
		"no due date": {
			func(w *world, _ *checkout.DryRunRequest) { w.Policy = strings.Replace(w.Policy, "Weeks", "Years", 1) },
			[]string{`the interval "Years" in the loan policy is not recognised`},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, req := newWorld(), checkout.DryRunRequest{ItemBarcode: "book", UserBarcode: "ann"}
			tt.prepare(w, &req)
			_, err := w.service().DryRun(t.Context(), req)
			if got := librarytest.Messages(err); !fault.Is(err, fault.Invalid) || !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if len(w.commits)+len(w.requests) > 0 {
				t.Errorf("locked %v and wrote %v", w.requests, w.commits)
			}
		})
	}
}
