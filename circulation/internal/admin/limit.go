package admin

import (
	"context"
	"time"

	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

const (
	// limitAge is how old a LimitReview may be: it counts many loans.
	limitAge = time.Minute
	// maxLimitReviews bounds the reviews, and the counts of limits, that are kept over all tenants.
	maxLimitReviews = 300
	// maxChangePages bounds the search for the change that turned the lock on.
	maxChangePages = 5
)

// LimitReview is whether the limit holds.
type LimitReview struct {
	schemas.LimitCheck
	// OnSince is when the library turned the lock on; zero if it is off, on by default, or has been on
	// for longer than the changes say.
	OnSince time.Time
	// Since is the beginning of LimitReached: OnSince, but at most schemas.LimitCheckDays ago.
	Since time.Time
}

// limitKey has the settings too, so that a review never contradicts the switch.
type limitKey struct {
	tenant  okapi.Tenant
	version string
	enabled bool
}

// ReviewLimit returns a review under the settings in force that may be a minute old.
func (s *Service) ReviewLimit(ctx context.Context) (LimitReview, error) {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return LimitReview{}, err
	}
	view, err := s.Settings(ctx)
	if err != nil {
		return LimitReview{}, err
	}
	key := limitKey{id, view.Version, view.Enabled.Value}
	return s.limits.Get(ctx, key, func(ctx context.Context, _ LimitReview) (r LimitReview, err error) {
		if view.Enabled.Value && view.Enabled.Source == settings.FromTenant {
			if r.OnSince, err = s.findTurnedOn(ctx); err != nil {
				return r, err
			}
		}
		r.Since = time.Now().AddDate(0, 0, -schemas.LimitCheckDays)
		if r.OnSince.After(r.Since) {
			r.Since = r.OnSince
		}
		r.LimitCheck, err = s.storage.CheckLimit(ctx, r.Since)
		return r, err
	})
}

// findTurnedOn returns the date of the newest change that turned the lock on; zero without one.
func (s *Service) findTurnedOn(ctx context.Context) (time.Time, error) {
	for page := range maxChangePages {
		list, err := s.LockChanges(ctx, schemas.ChangeSettings, page*schemas.MaxChangePage, schemas.MaxChangePage)
		if err != nil {
			return time.Time{}, err
		}
		for _, c := range list.Changes {
			if isOn(c.After) && !isOn(c.Before) {
				return time.Parse(schemas.FolioTime, c.Date)
			}
		}
		if len(list.Changes) < schemas.MaxChangePage {
			break
		}
	}
	return time.Time{}, nil
}

// isOn reports whether the value of the settings' entry turns the lock on.
func isOn(value []byte) bool {
	own, err := schemas.ParseLockSettings(value)
	return err == nil && own.Enabled != nil && *own.Enabled
}
