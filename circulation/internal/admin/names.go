package admin

import (
	"cmp"
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

const (
	// actorTimeout bounds the lookup of the name of the user who changes something. The
	// change waits for it.
	actorTimeout = 2 * time.Second
	// viewerTimeout is the same for a user who only views pages.
	viewerTimeout = 300 * time.Millisecond
	// nameAge is how long a viewer's name is kept.
	nameAge = 10 * time.Minute
	// noNameAge is how long it is kept that a viewer has no name or that storage did not
	// answer. So viewers do not wait for it on each page.
	noNameAge = time.Minute
	// maxNames bounds the names that are kept, over all tenants.
	maxNames = 1000
)

// ViewerName returns the name of the user in ctx, for pages to show: the one given at
// sign-in, else the one in the user's record, which may be nameAge old; empty if unknown.
// It takes viewerTimeout at most, and that once in noNameAge for each user while storage
// does not answer.
func (s *Service) ViewerName(ctx context.Context) string {
	if name, known := s.KnownViewerName(ctx); known {
		return name
	}
	name, err := s.findName(ctx, viewerTimeout)
	switch key := nameKeyOf(ctx); {
	case name != "":
		s.names.Put(key, name, nameAge)
	case err == nil || ctx.Err() == nil: // an error after the caller has left proves nothing
		s.names.Add(key, "", noNameAge) // it does not replace a name that was found meanwhile
	}
	return name
}

// KnownViewerName is ViewerName without a call to storage. known reports whether
// ViewerName would make none either.
func (s *Service) KnownViewerName(ctx context.Context) (name string, known bool) {
	if name, known := signInName(ctx); known {
		return name, true
	}
	return s.names.Peek(nameKeyOf(ctx))
}

// signInName returns the name given at sign-in. known is also true if there is no user id to
// find a name by.
func signInName(ctx context.Context) (name string, known bool) {
	info := okapi.FromContext(ctx)
	return fitName(info.UserName), info.UserName != "" || info.UserID == ""
}

// actorName returns the name of the user who changes something, for the history of changes: the
// one given at sign-in, else the one in the user's record. A change needs no name, since the
// history keeps the user's id too.
func (s *Service) actorName(ctx context.Context) string {
	name, known := signInName(ctx)
	if !known {
		name, _ = s.findName(ctx, actorTimeout) // it logs the error
	}
	return name
}

// findName finds the name in the record of the user in ctx; empty for none.
func (s *Service) findName(ctx context.Context, timeout time.Duration) (string, error) {
	id := okapi.FromContext(ctx).UserID
	rctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	found, err := s.storage.Users(rctx, []string{id})
	if err != nil {
		s.log.WarnContext(ctx, "the name of a member of staff was not found", "by_id", id, "err", err)
		return "", err
	}
	if len(found) == 0 {
		return "", nil
	}
	return cmp.Or(fitName(found[0].Personal.FullName()), fitName(found[0].Username)), nil
}

// fitName reduces a name to what storage keeps: printable characters, and a bounded number of them.
func fitName(name string) string {
	name = strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, name))
	if runes := []rune(name); len(runes) > schemas.MaxChangeName {
		name = strings.TrimSpace(string(runes[:schemas.MaxChangeName]))
	}
	return name
}

type nameKey struct {
	tenant okapi.Tenant
	user   string
}

// nameKeyOf names the user in ctx.
func nameKeyOf(ctx context.Context) nameKey {
	id, _ := okapi.TenantFrom(ctx) // without a tenant storage answers nothing
	return nameKey{id, okapi.FromContext(ctx).UserID}
}
