// Package anonymization takes the patrons off closed loans, as the tenant's setting says.
package anonymization

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas/fault"
)

// Loans reads and anonymizes loans.
type Loans interface {
	// SettingValue returns the value of a circulation setting. Fault: NotFound.
	SettingValue(ctx context.Context, name string) (json.RawMessage, error)
	// ClosedLoans returns the ids of closed loans that have a patron. Unless the time is zero, they were
	// returned before it.
	ClosedLoans(ctx context.Context, returnedBefore time.Time, limit int) ([]string, error)
	// AnonymizeLoans takes the patrons off those of the loans that are closed, in one transaction.
	AnonymizeLoans(ctx context.Context, ids []string) error
}

// Service anonymizes. All fields are required.
type Service struct {
	Loans Loans
	Log   *slog.Logger
	Now   func() time.Time
}

const (
	settingName = "loan_history"
	// batch bounds a transaction.
	batch = 500
	// maxLoans bounds a run: FOLIO's default (mod-circulation, Environment).
	maxLoans = 50_000
	// longest is after which time a run begins no other batch.
	longest = 5 * time.Second
)

// setting is FOLIO's setting loan_history, as far as it is about loans without fees and fines. There are
// no others here, so the parts feeFine and treatEnabled decide nothing.
type setting struct {
	ClosingType struct {
		Loan string `json:"loan"`
	} `json:"closingType"`
	Loan policy.KeptPeriod `json:"loan"`
}

// Run anonymizes the loans whose time has come, in batches, and returns their ids. What a run leaves, the
// next one finds. Without the setting it does nothing. Fault: Invalid for a setting that cannot be read.
// Source: mod-circulation's AnonymizationCheckersService.
func (s *Service) Run(ctx context.Context) ([]string, error) {
	before, on, err := s.readSetting(ctx)
	if err != nil || !on {
		return nil, err
	}
	var done []string
	start := time.Now()
	for len(done) < maxLoans && time.Since(start) < longest {
		ids, err := s.Loans.ClosedLoans(ctx, before, batch)
		if err != nil {
			return done, err
		}
		if err := s.Loans.AnonymizeLoans(ctx, ids); err != nil {
			return done, err
		}
		if done = append(done, ids...); len(ids) < batch {
			break
		}
	}
	if len(done) > 0 {
		s.Log.InfoContext(ctx, "anonymized loans", "loans", len(done))
	}
	return done, nil
}

// readSetting returns the time before which loans were returned that lose their patron, zero for any
// time; false if none do.
func (s *Service) readSetting(ctx context.Context) (before time.Time, on bool, err error) {
	value, exists, err := fault.Found(s.Loans.SettingValue(ctx, settingName))
	if err != nil || !exists {
		return time.Time{}, false, err
	}
	refuse := func(why string) error {
		return fault.Validation(fault.Refusal("", "The setting "+settingName+" cannot be used: "+why, fault.Param("value", fault.Shown(value))))
	}
	var stored setting
	if err := json.Unmarshal(value, &stored); err != nil {
		return time.Time{}, false, refuse(err.Error())
	}
	switch stored.ClosingType.Loan {
	case "immediately":
		return time.Time{}, true, nil
	case "interval":
		before, valid := stored.Loan.LastBegin(s.Now().UTC())
		if !valid {
			return time.Time{}, false, refuse("loan needs a duration and an intervalId: Minutes, Hours, Days, Weeks or Months")
		}
		return before, true, nil
	}
	return time.Time{}, false, nil // never, or a type of a later FOLIO
}
