package checkout

import (
	"context"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"checkoutlock/schemas/fault"
)

// Blocks finds what keeps patrons from borrowing and renewing. It is never cached.
type Blocks interface {
	// ManualBlocks returns what staff put on the patron, whatever it blocks.
	ManualBlocks(ctx context.Context, userID string) ([]ManualBlock, error)
	// AutomatedBlocks returns what follows from the patron's fees and loans.
	AutomatedBlocks(ctx context.Context, userID string) ([]AutomatedBlock, error)
}

// ManualBlock is a block that staff put on a patron (mod-feesfines).
type ManualBlock struct {
	Desc           string  `json:"desc"`
	Borrowing      bool    `json:"borrowing"`
	Renewals       bool    `json:"renewals"`
	ExpirationDate Instant `json:"expirationDate"` // zero for never
}

// AutomatedBlock is a block by the library's conditions (mod-patron-blocks).
type AutomatedBlock struct {
	BlockBorrowing bool   `json:"blockBorrowing"`
	BlockRenewals  bool   `json:"blockRenewals"`
	Message        string `json:"message"`
}

func (s *Service) gatherBlocks(ctx context.Context, g *errgroup.Group, f *facts) {
	g.Go(func() (err error) {
		f.manualBlocks, err = s.Library.ManualBlocks(ctx, f.user.ID)
		return err
	})
	g.Go(func() (err error) {
		f.automatedBlocks, err = s.Library.AutomatedBlocks(ctx, f.user.ID)
		return err
	})
}

// checkBlocks refuses a patron who is blocked from borrowing.
func (p *plan) checkBlocks(ctx context.Context, now time.Time) []fault.Detail {
	if !p.userFound {
		return nil
	}
	if lifted, wrong := p.lift(ctx, patronBlock); lifted {
		return wrong
	}
	wrong := p.blockedFrom("borrowing", now,
		func(b ManualBlock) bool { return b.Borrowing }, func(b AutomatedBlock) bool { return b.BlockBorrowing })
	for i := range wrong {
		wrong[i].OverridableBlock = patronBlock.overridable(ctx)
	}
	return wrong
}

// blockedFrom returns one error for all manual blocks of doing so, as FOLIO does,
// and one for each automated block.
func (f *facts) blockedFrom(doing string, now time.Time, manual func(ManualBlock) bool, automated func(AutomatedBlock) bool) []fault.Detail {
	var wrong []fault.Detail
	var reasons []string
	for _, b := range f.manualBlocks {
		if manual(b) && (b.ExpirationDate.IsZero() || b.ExpirationDate.After(now)) {
			reasons = append(reasons, b.Desc)
		}
	}
	if len(reasons) > 0 {
		wrong = append(wrong, detail("USER_IS_BLOCKED_MANUALLY", "Patron blocked from "+doing, fault.Param("reason", strings.Join(reasons, ";"))))
	}
	for _, b := range f.automatedBlocks {
		if automated(b) {
			wrong = append(wrong, detail("USER_IS_BLOCKED_AUTOMATICALLY", b.Message))
		}
	}
	return wrong
}
