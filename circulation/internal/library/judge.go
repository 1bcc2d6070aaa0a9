package library

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// Codes of refusals that several packages name. FOLIO has none for the same at a check-out.
const (
	// CodeItemNotFound is FOLIO's code for the same at a check-in.
	CodeItemNotFound   = "ITEM_BARCODE_NOT_FOUND"
	CodeItemCheckedOut = "ITEM_ALREADY_CHECKED_OUT"
	// CodeItemHadByPatron is CodeItemCheckedOut for an item that the same patron has.
	CodeItemHadByPatron = "ITEM_ALREADY_CHECKED_OUT_TO_PATRON"
	// CodeOpenLoan is FOLIO's, for an item with an open loan and another status than Checked out.
	CodeOpenLoan       = "ITEM_HAS_OPEN_LOAN"
	CodeItemStatus     = "ITEM_STATUS"           // another one that excludes what is asked for
	CodeItemRequested  = "ITEM_REQUESTED"        // by another patron
	CodePolicyNotFound = "LOAN_POLICY_NOT_FOUND" // that the request names
	CodeNoDueDate      = "NO_DUE_DATE"           // by the loan policy
	CodeNotOnLoan      = "ITEM_NOT_ON_LOAN"
	CodeItemUnknown    = "ITEM_NOT_FOUND" // by its id
	CodeProxyInvalid   = "PROXY_RELATIONSHIP_INVALID"
	CodeMissing        = "PROPERTY_MISSING" // of the request
)

// CheckUUID refuses a value that is no UUID.
func CheckUUID(key, value string) fault.List {
	if schemas.IsUUID(value) {
		return nil
	}
	return fault.List{fault.Refusal("", key+" must be a UUID", fault.Param(key, value))}
}

// NewBarcodeUnknown returns the detail of a barcode that is no item's, for check-ins and renewals.
func NewBarcodeUnknown(barcode string) fault.Detail {
	return fault.Refusal(CodeItemNotFound, fmt.Sprintf("No item with barcode %s exists", barcode), fault.Param("itemBarcode", barcode))
}

// NewNoItem returns the refusal of an id that is no item's.
func NewNoItem(id string) error {
	return fault.Validation(fault.Refusal(CodeItemUnknown, fmt.Sprintf("No item with ID %s could be found", id), fault.Param("itemId", id)))
}

// CheckActive refuses a patron whose card is inactive, or whose record does not contain that.
func (u User) CheckActive(now time.Time, whenUnknown, whenInactive fault.Detail) fault.List {
	switch {
	case u.Active == nil:
		return fault.List{whenUnknown}
	case u.IsInactive(now):
		return fault.List{whenInactive}
	}
	return nil
}

// ListBlocks returns one detail for all manual blocks of the action, as FOLIO does, and one for
// each automated block. They name the block by which staff may lift them.
func (f *Facts) ListBlocks(ctx context.Context, action string, now time.Time, manual func(ManualBlock) bool, automated func(AutomatedBlock) bool) fault.List {
	var found fault.List
	var reasons []string
	for _, b := range f.ManualBlocks {
		if manual(b) && b.IsInForce(now) {
			reasons = append(reasons, b.Desc)
		}
	}
	if len(reasons) > 0 {
		found = append(found, fault.Refusal("USER_IS_BLOCKED_MANUALLY", "Patron blocked from "+action, fault.Param("reason", strings.Join(reasons, ";"))))
	}
	for _, b := range f.AutomatedBlocks.Blocks {
		if automated(b) {
			found = append(found, NewAutomatedBlock(b.Message))
		}
	}
	for i := range found {
		found[i].OverridableBlock = PatronBlock.Describe(ctx)
	}
	return found
}

// NewAutomatedBlock returns the detail of an automated block.
func NewAutomatedBlock(message string) fault.Detail {
	return fault.Refusal("USER_IS_BLOCKED_AUTOMATICALLY", message)
}

// Criteria returns what the circulation rules are asked about. Fault: Internal, in FOLIO's words,
// if the library's records lack one of them.
func (f *Facts) Criteria() (policy.Criteria, error) {
	item, missing := f.Item, ""
	switch {
	case f.User.PatronGroup == "":
		missing = "a user with null value as patronGroupId"
	case item.EffectiveLocationID == "":
		missing = "an item with null value as locationId"
	case item.LoanTypeID() == "":
		missing = "an item which loan type can not be determined"
	case item.MaterialTypeID == "":
		missing = "an item with null value as materialTypeId"
	}
	if missing != "" {
		return policy.Criteria{}, fault.New(fault.Internal, "Unable to apply circulation rules to %s", missing)
	}
	location := f.Location
	return policy.Criteria{
		MaterialType: item.MaterialTypeID, LoanType: item.LoanTypeID(), PatronGroup: f.User.PatronGroup,
		Location: item.EffectiveLocationID, Library: location.LibraryID, Campus: location.CampusID, Institution: location.InstitutionID,
	}, nil
}

// NewPolicyNotFound returns the fault of rules that name a loan policy without a record.
func NewPolicyNotFound(id string) error {
	return fault.New(fault.Internal, "Loan policy %s could not be found, please check circulation rules", id)
}

// NamePolicy returns the parameters of refusals that a loan policy causes. The name comes first, as
// in FOLIO, because desks show the first parameter.
func NamePolicy(p policy.LoanPolicy) []fault.Parameter {
	return []fault.Parameter{fault.Param("loanPolicyName", p.Name), fault.Param("loanPolicyId", p.ID)}
}

// ComputeRecall returns when a recalled loan is due by the loan policy that the rules chose. It reads the
// schedule that limits a loan which is lent. Faults: Internal without policy or schedule; Invalid if the
// policy gives no date.
func ComputeRecall(ctx context.Context, records RecordsWithPolicies, policyID string, t policy.RecallTerms) (time.Time, error) {
	found, err := records.LoanPolicy(ctx, policyID)
	if fault.Is(err, fault.NotFound) {
		return time.Time{}, NewPolicyNotFound(policyID)
	}
	if err != nil {
		return time.Time{}, err
	}
	if t.Lent {
		if t.Schedule, err = ReadSchedule(ctx, records, found.ScheduleID, policyID); err != nil {
			return time.Time{}, err
		}
	}
	due, err := found.Recall(t)
	if refused, ok := errors.AsType[*policy.DueDateError](err); ok {
		return time.Time{}, fault.Validation(fault.Refusal(CodeNoDueDate, refused.Message, NamePolicy(found)...))
	}
	return due, err
}

// Block is a check that staff may lift: its name in FOLIO's errors and requests, and the permission
// that it takes.
type Block struct{ Name, Permission string }

// PatronBlock is that of patrons who are blocked by hand or by the library's conditions.
var PatronBlock = Block{Name: "patronBlock", Permission: "circulation.override-patron-block.post"}

// DueDateOverride lifts a block of a policy that gives no due date: it has the one that staff choose.
type DueDateOverride struct {
	DueDate Instant `json:"dueDate"`
}

// Describe returns the block as an error names it, with the permission that the caller lacks for it.
func (b Block) Describe(ctx context.Context) *fault.OverridableBlock {
	named := &fault.OverridableBlock{Name: b.Name, MissingPermissions: []string{}}
	if !okapi.FromContext(ctx).HasPermission(b.Permission) {
		named.MissingPermissions = append(named.MissingPermissions, b.Permission)
	}
	return named
}

// CheckPermission refuses a caller without the permission for the block. The parameters name what
// asks for the permission.
func (b Block) CheckPermission(ctx context.Context, parameters ...fault.Parameter) fault.List {
	named := b.Describe(ctx)
	if len(named.MissingPermissions) == 0 {
		return nil
	}
	d := fault.Refusal("INSUFFICIENT_OVERRIDE_PERMISSIONS", "Insufficient override permissions", parameters...)
	d.OverridableBlock = named
	return fault.List{d}
}
