package checkout_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas/fault"
)

// until is a date so long after now.
func until(d time.Duration) checkout.Instant { return checkout.Instant{Time: today.Add(d)} }

func TestBlocksOfAPatron(t *testing.T) {
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
		manual []checkout.ManualBlock
		auto   []checkout.AutomatedBlock
		want   []fault.Detail
	}{
		"none": {},
		"two by staff": {
			manual: []checkout.ManualBlock{{Desc: "owes books", Borrowing: true}, {Desc: "was loud", Borrowing: true, ExpirationDate: until(time.Second)}},
			want:   []fault.Detail{manually},
		},
		"of other things": {
			manual: []checkout.ManualBlock{{Desc: "no renewals"}},
			auto:   []checkout.AutomatedBlock{{Message: "no requests"}},
		},
		"expired": {manual: []checkout.ManualBlock{
			{Desc: "a second ago", Borrowing: true, ExpirationDate: until(-time.Second)}, {Desc: "now", Borrowing: true, ExpirationDate: until(0)},
		}},
		"by conditions, one error each": {
			auto: []checkout.AutomatedBlock{{BlockBorrowing: true, Message: "too many"}, {Message: "unused"}, {BlockBorrowing: true, Message: "too late"}},
			want: []fault.Detail{automatic("too many"), automatic("too late")},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.manual, w.auto = tt.manual, tt.auto
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

func TestBorrowingThroughAProxy(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	const noRelation = "Cannot check out item via proxy when relationship is invalid"
	related := []checkout.ProxyRelation{{Status: "Active", ExpirationDate: until(time.Second)}}
	tests := map[string]struct {
		carl    checkout.User
		proxies []checkout.ProxyRelation
		by      string
		want    []string
	}{
		"allowed":                   {carl: checkout.User{ID: carlID, Active: &yes}, proxies: related},
		"allowed, for ever":         {carl: checkout.User{ID: carlID, Active: &yes}, proxies: []checkout.ProxyRelation{{Status: "Inactive"}, {Status: "Active"}}},
		"unknown":                   {by: "dora", proxies: related, want: []string{"Could not find user with matching barcode"}},
		"no relation":               {carl: checkout.User{ID: carlID, Active: &yes}, want: []string{noRelation}},
		"inactive relation":         {carl: checkout.User{ID: carlID, Active: &yes}, proxies: []checkout.ProxyRelation{{Status: "Inactive"}}, want: []string{noRelation}},
		"expired relation":          {carl: checkout.User{ID: carlID, Active: &yes}, proxies: []checkout.ProxyRelation{{Status: "Active", ExpirationDate: until(-time.Second)}}, want: []string{noRelation}},
		"activity unknown":          {carl: checkout.User{ID: carlID}, proxies: related, want: []string{"Cannot determine if proxying user is active or not"}},
		"inactive":                  {carl: checkout.User{ID: carlID, Active: &no}, proxies: related, want: []string{"Cannot check out via inactive proxying user"}},
		"expired":                   {carl: checkout.User{ID: carlID, Active: &yes, ExpirationDate: until(-time.Second)}, proxies: related, want: []string{"Cannot check out via inactive proxying user"}},
		"expired, without relation": {carl: checkout.User{ID: carlID, Active: &yes, ExpirationDate: until(-time.Second)}, want: []string{"Cannot check out via inactive proxying user", noRelation}},
		"for themselves":            {by: "ann", proxies: related, want: []string{"User cannot be proxy for themselves"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.people, w.proxies = map[string]checkout.User{"carl": tt.carl}, tt.proxies
			if tt.by == "" {
				tt.by = "carl"
			}
			_, err := w.service().CheckOut(t.Context(), checkout.Request{
				ItemBarcode: "book", UserBarcode: "ann", ServicePointID: deskID, ProxyUserBarcode: tt.by,
			})
			if got := messages(err); !slices.Equal(got, tt.want) || (err == nil) != (len(w.commits) == 1) {
				t.Errorf("got %q (%v), want %q", got, err, tt.want)
			}
			if err == nil && (w.requests[0].UserID != annID || w.counted[0][:36] != annID || !contains(w, `"userId":"`+annID+`","proxyUserId":"`+carlID+`"`)) {
				t.Errorf("locked %+v, counted %v, lent %s; all must be the sponsor's", w.requests[0], w.counted, w.commits[0].Loan)
			}
		})
	}
}

func TestAProxyForANobodyIsStillLookedAt(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.people = map[string]checkout.User{"carl": {ID: carlID}}
	_, err := w.service().CheckOut(t.Context(), checkout.Request{
		ItemBarcode: "book", UserBarcode: "bob", ServicePointID: deskID, ProxyUserBarcode: "carl",
	})
	want := []string{"Could not find user with matching barcode", "Cannot determine if proxying user is active or not"}
	if got := messages(err); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
