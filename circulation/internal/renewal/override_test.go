package renewal_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/renewal"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// spell returns the refusals as code, block and missing permissions.
func spell(err error) []string {
	var f *fault.Error
	if !errors.As(err, &f) {
		return nil
	}
	var all []string
	for _, d := range f.Details {
		text := d.Code
		if d.OverridableBlock != nil {
			text += " " + d.OverridableBlock.Name + " " + strings.Join(d.OverridableBlock.MissingPermissions, ",")
		}
		all = append(all, strings.TrimSpace(text))
	}
	return all
}

// day returns a due date of staff.
func day(t *testing.T, date string) *library.DueDateOverride {
	t.Helper()
	var o library.DueDateOverride
	if err := o.DueDate.UnmarshalJSON([]byte(`"` + date + `"`)); err != nil {
		t.Fatal(err)
	}
	return &o
}

// recall is a recall of the book by Carl.
func recall() []schemas.QueuedRequest {
	return []schemas.QueuedRequest{
		librarytest.NewRequest("q", librarytest.CarlID, "Recall", "Item", schemas.RequestNotYetFilled, 1),
	}
}

const (
	mayRenew  = "circulation.override-renewal-block.post"
	mayPatron = "circulation.override-patron-block.post"
)

func TestRenew_RefusalsNameTheirBlock(t *testing.T) {
	t.Parallel()
	inactive := false
	tests := map[string]struct {
		prepare func(*renewals)
		want    []string
	}{
		"inactive":         {func(r *renewals) { r.Patron.Active = &inactive }, []string{"USER_IS_INACTIVE_OR_EXPIRED"}},
		"activity unknown": {func(r *renewals) { r.Patron.Active = nil }, []string{"USER_STATUS_CANNOT_BE_DETERMINED"}},
		"another's": {
			func(r *renewals) { r.loan = `{"id":"l","userId":"` + librarytest.CarlID + `"}` },
			[]string{"ITEM_CHECKED_OUT_TO_DIFFERENT_USER"},
		},
		"unknown item":     {func(r *renewals) { r.NoBook = true }, []string{"ITEM_BARCODE_NOT_FOUND"}},
		"deleted borrower": {func(r *renewals) { r.NoPatron = true }, []string{"USER_NOT_FOUND"}},
		"another's, who was deleted": {
			func(r *renewals) { r.loan = `{"id":"l","userId":"` + librarytest.OtherID + `"}` }, []string{"USER_NOT_FOUND"},
		},
		"not renewable": {
			func(r *renewals) { r.Policy = strings.Replace(r.Policy, `"renewable":true`, `"renewable":false`, 1) },
			[]string{"LOAN_NOT_RENEWABLE renewalDueDateRequiredBlock " + mayRenew},
		},
		"a policy without a start": {
			func(r *renewals) { r.Policy = strings.Replace(r.Policy, "SYSTEM_DATE", "SOME_DATE", 1) },
			[]string{"LOAN_POLICY_RENEW_FROM_NOT_RECOGNIZED renewalDueDateRequiredBlock " + mayRenew},
		},
		"on hold": {
			func(r *renewals) {
				r.Queue = []schemas.QueuedRequest{
					librarytest.NewRequest("q", librarytest.CarlID, "Hold", "Item", schemas.RequestNotYetFilled, 1),
				}
			},
			[]string{"RENEWAL_BLOCKED_BY_HOLD_REQUEST renewalDueDateRequiredBlock " + mayRenew},
		},
		"recalled": {
			func(r *renewals) { r.Queue = recall() }, []string{"RENEWAL_BLOCKED_BY_RECALL renewalBlock " + mayRenew},
		},
		"recalled, a hold behind": {
			func(r *renewals) {
				r.Queue = append(recall(),
					librarytest.NewRequest("r", librarytest.CarlID, "Hold", "Item", schemas.RequestNotYetFilled, 2))
			},
			[]string{"RENEWAL_BLOCKED_BY_RECALL renewalBlock " + mayRenew},
		},
		"claimed returned": {
			func(r *renewals) { r.Book.Status.Name = "Claimed returned" }, []string{"ITEM_CLAIMED_RETURNED_NOT_RENEWABLE"},
		},
		"declared lost": {
			func(r *renewals) { r.Book.Status.Name = "Declared lost" },
			[]string{"ITEM_DECLARED_LOST_NOT_RENEWABLE renewalBlock " + mayRenew},
		},
		"aged to lost": {
			func(r *renewals) { r.Book.Status.Name = "Aged to lost" },
			[]string{"ITEM_AGED_TO_LOST_NOT_RENEWABLE renewalBlock " + mayRenew},
		},
		"too often": {
			func(r *renewals) { r.loan = strings.Replace(r.loan, ":2}", ":3}", 1) },
			[]string{"LOAN_RENEWAL_LIMIT_REACHED renewalBlock " + mayRenew},
		},
		"not lent": {
			func(r *renewals) { r.Policy = strings.Replace(r.Policy, `"loanable":true`, `"loanable":false`, 1) },
			[]string{"ITEM_NOT_LOANABLE renewalDueDateRequiredBlock " + mayRenew},
		},
		"the same date": {
			func(r *renewals) { r.loan = strings.Replace(r.loan, "2026-03-05", "2026-04-05", 1) },
			[]string{"RENEWAL_WOULD_NOT_CHANGE_DUE_DATE renewalDueDateRequiredBlock " + mayRenew},
		},
		"blocked by hand": {
			func(r *renewals) { r.Manual = []library.ManualBlock{{Renewals: true}} },
			[]string{"USER_IS_BLOCKED_MANUALLY patronBlock " + mayPatron},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRenewals()
			tt.prepare(r)
			if _, err := r.renew(t); !slices.Equal(spell(err), tt.want) {
				t.Errorf("got %q (%v), want %q", spell(err), err, tt.want)
			}
		})
	}
}

// A client opens the recall by the parameter's name.
func TestRenew_RefusalNamesTheRecall(t *testing.T) {
	t.Parallel()
	r := newRenewals()
	r.Queue = recall()
	_, err := r.renew(t)
	var f *fault.Error
	if !errors.As(err, &f) || len(f.Details) != 1 || len(f.Details[0].Parameters) != 1 ||
		f.Details[0].Parameters[0].Key != "requestId" || *f.Details[0].Parameters[0].Value != "q" {
		t.Errorf("got %+v", err)
	}
}

func TestRenew_Overrides(t *testing.T) {
	t.Parallel()
	lift, all := &struct{}{}, []string{mayRenew, mayPatron}
	notRenewable := func(r *renewals) { r.Policy = strings.Replace(r.Policy, `"renewable":true`, `"renewable":false`, 1) }
	notLoanable := func(r *renewals) { r.Policy = strings.Replace(r.Policy, `"loanable":true`, `"loanable":false`, 1) }
	tooOften := func(r *renewals) { r.loan = strings.Replace(r.loan, ":2}", ":3}", 1) }
	late := func(r *renewals) { r.loan = strings.Replace(r.loan, "2026-03-05", "2026-04-05", 1) }
	const ruled = "2026-03-15T10:00:00.000Z" // by the policy
	tests := map[string]struct {
		prepare func(*renewals)
		blocks  renewal.OverrideBlocks
		may     []string
		wantDue string
		want    schemas.RenewalOverride
		refused []string
	}{
		"too often": {prepare: tooOften, blocks: renewal.OverrideBlocks{RenewalBlock: lift}, may: all, wantDue: ruled},
		"too often, no date": {
			prepare: tooOften, blocks: renewal.OverrideBlocks{DueDateBlock: &library.DueDateOverride{}}, may: all,
			wantDue: ruled,
		},
		"without any permission": {
			prepare: tooOften, blocks: renewal.OverrideBlocks{PatronBlock: lift, DueDateBlock: day(t, "2026-05-01T00:00:00Z")},
			refused: []string{
				"INSUFFICIENT_OVERRIDE_PERMISSIONS patronBlock " + mayPatron,
				"INSUFFICIENT_OVERRIDE_PERMISSIONS renewalDueDateRequiredBlock " + mayRenew,
			},
		},
		"blocked and too often, one is lifted": {
			prepare: func(r *renewals) { tooOften(r); r.Manual = []library.ManualBlock{{Renewals: true}} },
			blocks:  renewal.OverrideBlocks{PatronBlock: lift}, may: []string{mayPatron},
			refused: []string{"LOAN_RENEWAL_LIMIT_REACHED renewalBlock " + mayRenew},
		},
		"recalled": {
			prepare: func(r *renewals) { r.Queue = recall() }, blocks: renewal.OverrideBlocks{RenewalBlock: lift}, may: all,
			wantDue: ruled, want: schemas.RenewalOverride{Recalled: true},
		},
		"too often, the card ends before": {
			prepare: func(r *renewals) {
				tooOften(r)
				r.Patron.ExpirationDate = library.Instant{Time: librarytest.Today.AddDate(0, 0, 7)}
			},
			blocks: renewal.OverrideBlocks{RenewalBlock: lift}, may: all, wantDue: ruled,
		},
		"too often, a hold waits": {
			prepare: func(r *renewals) {
				tooOften(r)
				r.Policy = strings.Replace(r.Policy, `"renewable":true`, `"renewable":true,"requestManagement":{"holds":{`+
					`"renewItemsWithRequest":true,"alternateRenewalLoanPeriod":{"duration":5,"intervalId":"Days"}}}`, 1)
				r.Queue = []schemas.QueuedRequest{
					librarytest.NewRequest("q", librarytest.CarlID, "Hold", "Item", schemas.RequestNotYetFilled, 1),
				}
			},
			blocks: renewal.OverrideBlocks{RenewalBlock: lift}, may: all, wantDue: ruled,
		},
		"lost": {
			prepare: func(r *renewals) { r.Book.Status.Name = "Aged to lost" },
			blocks:  renewal.OverrideBlocks{RenewalBlock: lift}, may: all, wantDue: ruled,
			want: schemas.RenewalOverride{ItemStatus: "Checked out"},
		},
		"not renewable": {
			prepare: notRenewable, blocks: renewal.OverrideBlocks{DueDateBlock: day(t, "2026-05-01T00:00:00Z")}, may: all,
			wantDue: "2026-05-01T00:00:00.000Z",
		},
		"not renewable, no date": {
			prepare: notRenewable, blocks: renewal.OverrideBlocks{RenewalBlock: lift}, may: all,
			refused: []string{"OVERRIDE_RENEWAL_DUE_DATE_REQUIRED renewalDueDateRequiredBlock"},
		},
		"not loanable": {
			prepare: notLoanable, blocks: renewal.OverrideBlocks{DueDateBlock: day(t, "2026-05-01T00:00:00Z")}, may: all,
			wantDue: "2026-05-01T00:00:00.000Z",
		},
		"blocked": {
			prepare: func(r *renewals) { r.Manual = []library.ManualBlock{{Renewals: true}} },
			blocks:  renewal.OverrideBlocks{PatronBlock: lift}, may: all, wantDue: ruled,
		},
		"nothing to lift": {
			prepare: func(*renewals) {}, blocks: renewal.OverrideBlocks{RenewalBlock: lift}, may: all, wantDue: ruled,
		},
		"not loanable, no date": {
			prepare: notLoanable, blocks: renewal.OverrideBlocks{RenewalBlock: lift}, may: all,
			refused: []string{"OVERRIDE_RENEWAL_DUE_DATE_REQUIRED renewalDueDateRequiredBlock"},
		},
		"no later date by the policy": {
			prepare: late, blocks: renewal.OverrideBlocks{RenewalBlock: lift}, may: all,
			refused: []string{"OVERRIDE_RENEWAL_DUE_DATE_REQUIRED_WHEN_DUE_DATE_UNCHANGED renewalDueDateRequiredBlock"},
		},
		"no later date by staff": {
			prepare: late, blocks: renewal.OverrideBlocks{DueDateBlock: day(t, "2026-03-20T00:00:00Z")}, may: all,
			refused: []string{"RENEWAL_WOULD_NOT_CHANGE_DUE_DATE renewalDueDateRequiredBlock"},
		},
		"a date by staff within the millisecond of the due date": {
			prepare: tooOften, blocks: renewal.OverrideBlocks{DueDateBlock: day(t, "2026-03-05T11:00:00.5009Z")}, may: all,
			refused: []string{"RENEWAL_WOULD_NOT_CHANGE_DUE_DATE renewalDueDateRequiredBlock"},
		},
		"no permission": {
			prepare: tooOften, blocks: renewal.OverrideBlocks{RenewalBlock: lift}, may: []string{mayPatron},
			refused: []string{"INSUFFICIENT_OVERRIDE_PERMISSIONS renewalBlock " + mayRenew},
		},
		"another block": {
			prepare: tooOften, blocks: renewal.OverrideBlocks{PatronBlock: lift}, may: all, refused: []string{
				"LOAN_RENEWAL_LIMIT_REACHED renewalBlock",
			},
		},
		"claimed returned": {
			prepare: func(r *renewals) { r.Book.Status.Name = "Claimed returned" },
			blocks:  renewal.OverrideBlocks{RenewalBlock: lift}, may: all,
			refused: []string{"ITEM_CLAIMED_RETURNED_NOT_RENEWABLE"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRenewals()
			tt.prepare(r)
			tt.blocks.Comment = "agreed"
			req := renewal.Request{ItemBarcode: "book", UserBarcode: "ann", OverrideBlocks: tt.blocks}
			_, err := r.service().Renew(okapi.NewContext(t.Context(), okapi.Call{Permissions: tt.may}), req)
			if tt.refused != nil {
				if !slices.Equal(spell(err), tt.refused) || r.renewed != nil {
					t.Errorf("got %q (%v) after %+v, want %q", spell(err), err, r.renewed, tt.refused)
				}
				return
			}
			tt.want.Comment = "agreed"
			if err != nil || len(r.renewed) != 1 || r.renewed[0].Override == nil || *r.renewed[0].Override != tt.want ||
				r.renewed[0].DueDate != tt.wantDue {
				t.Errorf("got %v after %+v, want due %s by %+v", err, r.renewed, tt.wantDue, tt.want)
			}
		})
	}
}

func TestRenew_OverrideNeedsAComment(t *testing.T) {
	t.Parallel()
	r := newRenewals()
	req := renewal.Request{
		ItemBarcode: "book", UserBarcode: "ann",
		OverrideBlocks: renewal.OverrideBlocks{RenewalBlock: &struct{}{}, Comment: " "},
	}
	_, err := r.service().Renew(okapi.NewContext(t.Context(), okapi.Call{Permissions: []string{mayRenew}}), req)
	if want := []string{"OVERRIDE_RENEWAL_COMMENT_REQUIRED"}; !slices.Equal(spell(err), want) || r.renewed != nil {
		t.Errorf("got %q, want %q", spell(err), want)
	}
}

func TestRenewByID(t *testing.T) {
	t.Parallel()
	r := newRenewals()
	if _, err := r.service().RenewByID(t.Context(), renewal.ByIDRequest{
		ItemID: librarytest.BookItemID, UserID: librarytest.AnnID, Seen: new(int),
	}); !fault.Is(err, fault.LoanChanged) || r.renewed != nil {
		t.Errorf("a loan that was renewed before: got %v after %+v", err, r.renewed)
	}
	ctx := okapi.NewContext(t.Context(), okapi.Call{Permissions: []string{mayPatron}})
	if _, err := r.service().RenewByID(ctx, renewal.ByIDRequest{
		ItemID: librarytest.BookItemID, UserID: librarytest.AnnID,
		OverrideBlocks: renewal.OverrideBlocks{PatronBlock: &struct{}{}, Comment: "agreed"},
	}); err != nil || len(r.renewed) != 1 || r.renewed[0].Override == nil {
		t.Errorf("got %v after %+v", err, r.renewed)
	}
	for name, tt := range map[string]struct {
		req  renewal.ByIDRequest
		want []string
	}{
		"no item": {renewal.ByIDRequest{UserID: librarytest.AnnID}, []string{"Renewal request must have an item ID"}},
		"no user": {
			renewal.ByIDRequest{ItemID: librarytest.BookItemID}, []string{"Renewal request must have a user ID"},
		},
		"no ids": {
			renewal.ByIDRequest{ItemID: "book", UserID: "ann"}, []string{"itemId must be a UUID", "userId must be a UUID"},
		},
		"none of both": {
			renewal.ByIDRequest{ItemID: librarytest.OtherID, UserID: librarytest.CarlID},
			[]string{"No item with ID " + librarytest.OtherID + " exists"},
		},
		"not theirs": {
			renewal.ByIDRequest{ItemID: librarytest.BookItemID, UserID: librarytest.CarlID},
			[]string{"Cannot renew item checked out to different user"},
		},
	} {
		if _, err := r.service().RenewByID(t.Context(), tt.req); !slices.Equal(librarytest.Messages(err), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}
