package checkout_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas/fault"
)

func TestPlan_BlocksOfAPatron(t *testing.T) {
	t.Parallel()
	manually := fault.Detail{
		Message: "Patron blocked from borrowing", Code: "USER_IS_BLOCKED_MANUALLY",
		Parameters:       []fault.Parameter{fault.Param("reason", "owes books;was loud")},
		OverridableBlock: &fault.OverridableBlock{Name: "patronBlock", MissingPermissions: []string{mayPatron}},
	}
	automatic := func(message string) fault.Detail {
		return fault.Detail{
			Message: message, Code: "USER_IS_BLOCKED_AUTOMATICALLY",
			OverridableBlock: &fault.OverridableBlock{Name: "patronBlock", MissingPermissions: []string{mayPatron}},
		}
	}
	tests := map[string]struct {
		manual []library.ManualBlock
		auto   []library.AutomatedBlock
		want   []fault.Detail
	}{
		"none": {},
		"two by staff": {
			manual: []library.ManualBlock{
				{Desc: "owes books", Borrowing: true}, {Desc: "was loud", Borrowing: true, ExpirationDate: until(time.Second)},
			},
			want: []fault.Detail{manually},
		},
		"of other things": {
			manual: []library.ManualBlock{{Desc: "no renewals"}},
			auto:   []library.AutomatedBlock{{Message: "no requests"}},
		},
		"expired": {manual: []library.ManualBlock{
			{
				Desc: "a second ago", Borrowing: true, ExpirationDate: until(-time.Second),
			}, {Desc: "now", Borrowing: true, ExpirationDate: until(0)},
		}},
		"by conditions, one error each": {
			auto: []library.AutomatedBlock{
				{BlockBorrowing: true, Message: "too many"}, {Message: "unused"}, {BlockBorrowing: true, Message: "too late"},
			},
			want: []fault.Detail{automatic("too many"), automatic("too late")},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBackend()
			w.Manual, w.Automated = tt.manual, tt.auto
			_, err := w.checkOut(t)
			var f *fault.Error
			var got []fault.Detail
			if errors.As(err, &f) {
				got = f.Details
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v (%v)\nwant %+v", got, err, tt.want)
			}
		})
	}
}

func TestPlan_Proxies(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	const noRelation = "Cannot check out item via proxy when relationship is invalid"
	related := []library.ProxyRelation{{Status: "Active", ExpirationDate: until(time.Second)}}
	tests := map[string]struct {
		carl    library.User
		proxies []library.ProxyRelation
		by      string
		want    []string
	}{
		"allowed": {carl: library.User{ID: librarytest.CarlID, Active: &yes}, proxies: related},
		"allowed, for ever": {
			carl:    library.User{ID: librarytest.CarlID, Active: &yes},
			proxies: []library.ProxyRelation{{Status: "Inactive"}, {Status: "Active"}},
		},
		"unknown": {
			by: "dora", proxies: related, want: []string{"Could not find user with matching barcode"},
		},
		"no relation": {carl: library.User{ID: librarytest.CarlID, Active: &yes}, want: []string{noRelation}},
		"inactive relation": {
			carl: library.User{ID: librarytest.CarlID, Active: &yes}, proxies: []library.ProxyRelation{{Status: "Inactive"}},
			want: []string{noRelation},
		},
		"expired relation": {
			carl:    library.User{ID: librarytest.CarlID, Active: &yes},
			proxies: []library.ProxyRelation{{Status: "Active", ExpirationDate: until(-time.Second)}},
			want:    []string{noRelation},
		},
		"activity unknown": {
			carl: library.User{ID: librarytest.CarlID}, proxies: related,
			want: []string{"Cannot determine if proxying user is active or not"},
		},
		"inactive": {
			carl: library.User{ID: librarytest.CarlID, Active: &no}, proxies: related,
			want: []string{"Cannot check out via inactive proxying user"},
		},
		"expired": {
			carl: library.User{ID: librarytest.CarlID, Active: &yes, ExpirationDate: until(-time.Second)}, proxies: related,
			want: []string{"Cannot check out via inactive proxying user"},
		},
		"expired, without relation": {
			carl: library.User{ID: librarytest.CarlID, Active: &yes, ExpirationDate: until(-time.Second)},
			want: []string{"Cannot check out via inactive proxying user", noRelation},
		},
		"for themselves": {by: "ann", proxies: related, want: []string{"User cannot be proxy for themselves"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBackend()
			w.Others, w.proxies = map[string]library.User{"carl": tt.carl}, tt.proxies
			if tt.by == "" {
				tt.by = "carl"
			}
			_, err := w.service().CheckOut(t.Context(), checkout.Request{
				ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID, ProxyUserBarcode: tt.by,
			})
			if got := librarytest.Messages(err); !slices.Equal(got, tt.want) || (err == nil) != (len(w.commits) == 1) {
				t.Errorf("got %q (%v), want %q", got, err, tt.want)
			}
			if err == nil && (w.requests[0].UserID != librarytest.AnnID ||
				!contains(w, `"userId":"`+librarytest.AnnID+`","proxyUserId":"`+librarytest.CarlID+`"`)) {
				t.Errorf("locked %+v, lent %s; both must be the sponsor's", w.requests[0], w.commits[0].Loan)
			}
		})
	}
}

func TestPlan_ChecksTheProxyOfAnUnknownPatron(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.Others = map[string]library.User{"carl": {ID: librarytest.CarlID}}
	_, err := w.service().CheckOut(t.Context(), checkout.Request{
		ItemBarcode: "book", UserBarcode: "bob", ServicePointID: librarytest.DeskID, ProxyUserBarcode: "carl",
	})
	want := []string{"Could not find user with matching barcode", "Cannot determine if proxying user is active or not"}
	if got := librarytest.Messages(err); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
