package checkout

import (
	"context"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"checkoutlock/schemas/fault"
)

// Blocks finds what keeps patrons from borrowing. It is never cached.
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
	ExpirationDate Instant `json:"expirationDate"` // zero for never
}

// AutomatedBlock is a block by the library's conditions (mod-patron-blocks).
type AutomatedBlock struct {
	BlockBorrowing bool   `json:"blockBorrowing"`
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

// checkBlocks returns one error for all manual blocks of borrowing, as FOLIO
// does, and one for each automated block.
func (p *plan) checkBlocks(ctx context.Context, now time.Time) []fault.Detail {
	if !p.userFound {
		return nil
	}
	if lifted, wrong := p.lift(ctx, patronBlock); lifted {
		return wrong
	}
	var wrong []fault.Detail
	add := func(code, message string, parameters ...fault.Parameter) {
		d := detail(code, message, parameters...)
		d.OverridableBlock = patronBlock.overridable(ctx)
		wrong = append(wrong, d)
	}
	var reasons []string
	for _, b := range p.manualBlocks {
		if b.Borrowing && (b.ExpirationDate.IsZero() || b.ExpirationDate.After(now)) {
			reasons = append(reasons, b.Desc)
		}
	}
	if len(reasons) > 0 {
		add("USER_IS_BLOCKED_MANUALLY", "Patron blocked from borrowing", fault.Param("reason", strings.Join(reasons, ";")))
	}
	for _, b := range p.automatedBlocks {
		if b.BlockBorrowing {
			add("USER_IS_BLOCKED_AUTOMATICALLY", b.Message)
		}
	}
	return wrong
}
