package admin

import (
	"context"
	"time"

	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

const (
	// FiguresAge is how old Figures may be: each instance asks storage once in that time,
	// for any number of viewers.
	FiguresAge = 5 * time.Second
	// figuresTimeout bounds one call to storage; a caller that waits for it may leave earlier.
	figuresTimeout = 5 * time.Second
	// maxFigures bounds the figures that are kept, over all tenants and times. Those
	// of a day are some 200 KB.
	maxFigures = 128
	// maxFigureCalls bounds the calls under way: a caller may name many numbers of minutes.
	maxFigureCalls = 4
)

type figuresKey struct {
	tenant  okapi.Tenant
	minutes int
}

// Figures returns those of the last minutes, 1 to schemas.MaxFigureMinutes; they
// may be FiguresAge old. Callers share them, so no caller may change what they point at.
// Fault: Invalid for another number.
func (s *Service) Figures(ctx context.Context, minutes int) (schemas.Figures, error) {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return schemas.Figures{}, err
	}
	return s.figures.Get(ctx, figuresKey{id, minutes}, func(ctx context.Context, _ schemas.Figures) (schemas.Figures, error) {
		ctx, cancel := context.WithTimeout(ctx, figuresTimeout)
		defer cancel()
		select {
		case s.figureCalls <- struct{}{}:
			defer func() { <-s.figureCalls }()
			return s.storage.Figures(ctx, minutes)
		case <-ctx.Done():
			return schemas.Figures{}, ctx.Err()
		}
	})
}
