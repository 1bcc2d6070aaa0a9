package admin

import (
	"context"
	"strings"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas/okapi"
)

// NameRules names the records that the lines of circulation rules refer to, by id in lower case. It makes
// one call or more for each kind of record. If some cannot be read, it logs that and leaves them out.
func (s *Service) NameRules(ctx context.Context, text string) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, namesTimeout)
	defer cancel()
	ids, listed := map[string][]string{}, map[policy.Mention]bool{}
	for _, line := range policy.SplitLines(text) {
		for _, m := range policy.FindMentions(line) {
			m.Start, m.End, m.ID = 0, 0, strings.ToLower(m.ID)
			if !listed[m] {
				listed[m] = true
				ids[m.Kind] = append(ids[m.Kind], m.ID)
			}
		}
	}
	found := make(chan []library.Named, len(ids))
	calls, cctx := library.NewCalls(ctx)
	for kind, some := range ids {
		calls.Go(func() error {
			records, err := s.storage.NamedInRules(cctx, kind, some)
			if err != nil {
				s.log.WarnContext(cctx, "page shown without names", "of", kind, "err", err)
			}
			found <- records
			return nil
		})
	}
	if err := calls.Wait(); err != nil { // a panic
		s.log.ErrorContext(ctx, "page shown without names", "err", err)
	}
	close(found)
	names := map[string]string{}
	for records := range found {
		for _, r := range records {
			names[strings.ToLower(r.ID)] = r.Name
		}
	}
	return names
}

// uncountedAge is how old CountUncounted may be.
const uncountedAge = time.Minute

// CountUncounted counts the item limits that count nothing. The count may be a minute old.
func (s *Service) CountUncounted(ctx context.Context) (int, error) {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return 0, err
	}
	return s.uncounted.Get(ctx, id, func(ctx context.Context, _ int) (int, error) {
		review, err := s.Rules(ctx)
		return len(review.Uncounted), err
	})
}
