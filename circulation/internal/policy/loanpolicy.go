package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// maxItemLimit is the largest item limit that FOLIO's schema of loan policies allows.
const maxItemLimit = 9999

// LoanPolicy is what a check-out needs of a stored loan policy.
type LoanPolicy struct {
	ID        string
	Name      string
	Loanable  bool
	ItemLimit int // 1 to 9999; 0 is unlimited. See ItemLimitFor for when it counts

	// ScheduleID names the fixed due date schedule that DueDate needs: the due
	// dates of the profile Fixed, the limit of the profile Rolling. Empty is none.
	ScheduleID string

	profile   string
	period    period
	alternate *period // the one while a hold waits; nil for the usual one
}

// period is the time a rolling loan lasts. duration is nil and interval empty
// where the policy leaves them out.
type period struct {
	duration *int
	interval string
}

// UnmarshalJSON reads FOLIO's {"duration":n,"intervalId":"…"}.
func (p *period) UnmarshalJSON(raw []byte) error {
	var record struct {
		Duration   *wholeNumber `json:"duration"`
		IntervalID string       `json:"intervalId"`
	}
	err := json.Unmarshal(raw, &record)
	*p = period{duration: (*int)(record.Duration), interval: record.IntervalID}
	return err
}

// ParseLoanPolicy reads a record of FOLIO's /loan-policy-storage/loan-policies.
// Null counts as absent, unknown fields are passed over. The error says which
// field has a value of the wrong type or is out of range. A period that makes
// no sense is not an error here but one of DueDate's, so that a check-out can
// still report everything else.
func ParseLoanPolicy(raw []byte) (LoanPolicy, error) {
	var record struct {
		ID          string `json:"id"`
		Name        string `json:"name"`
		Loanable    bool   `json:"loanable"`
		LoansPolicy struct {
			ProfileID              string       `json:"profileId"`
			Period                 period       `json:"period"`
			FixedDueDateScheduleID string       `json:"fixedDueDateScheduleId"`
			ItemLimit              *wholeNumber `json:"itemLimit"`
		} `json:"loansPolicy"`
		RequestManagement struct {
			Holds struct {
				AlternateCheckoutLoanPeriod *period `json:"alternateCheckoutLoanPeriod"`
			} `json:"holds"`
		} `json:"requestManagement"`
	}
	if err := json.Unmarshal(raw, &record); err != nil {
		return LoanPolicy{}, fmt.Errorf("read loan policy: %w", err)
	}
	loans := record.LoansPolicy
	p := LoanPolicy{
		ID:         record.ID,
		Name:       record.Name,
		Loanable:   record.Loanable,
		ScheduleID: loans.FixedDueDateScheduleID,
		profile:    loans.ProfileID,
		period:     loans.Period,
		alternate:  record.RequestManagement.Holds.AlternateCheckoutLoanPeriod,
	}
	if limit := loans.ItemLimit; limit != nil {
		if *limit < 1 || *limit > maxItemLimit {
			return LoanPolicy{}, fmt.Errorf("read loan policy %q: loansPolicy.itemLimit is %d, allowed are 1 to %d", p.ID, *limit, maxItemLimit)
		}
		p.ItemLimit = int(*limit)
	}
	return p, nil
}

// wholeNumber is a JSON number without a fraction. Unlike an int it may be
// written 5.0, which JSON Schema calls an integer too.
type wholeNumber int

// UnmarshalJSON reads a number of at most 32 bits, as in FOLIO.
func (n *wholeNumber) UnmarshalJSON(raw []byte) error {
	var f float64
	if err := json.Unmarshal(raw, &f); err != nil {
		return err
	}
	if f != math.Trunc(f) || f < math.MinInt32 || f > math.MaxInt32 {
		return errors.New("not a whole number of 32 bits: " + string(raw))
	}
	*n = wholeNumber(f)
	return nil
}
