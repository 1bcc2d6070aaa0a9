package admin

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

const (
	// whoTimeout bounds finding out the name of who acts. The change waits for it.
	whoTimeout = 2 * time.Second
	// lookTimeout is the same for who only looks.
	lookTimeout = 300 * time.Millisecond
	// nameAge and noNameAge are how long a name is kept for who only looks, and that
	// there was none or storage did not say: then they do not wait for each page.
	nameAge   = 10 * time.Minute
	noNameAge = time.Minute
	// maxNames bounds the names that are kept, over all tenants.
	maxNames = 1000
)

// Who names who looks, for pages to show: as they signed in, else by the record of
// the user, which may be nameAge old; empty when nobody knows. It takes lookTimeout
// at most, and that once in noNameAge for each user while storage does not answer.
func (s *Service) Who(ctx context.Context) string {
	if name, known := s.KnownWho(ctx); known {
		return name
	}
	name, err := s.lookUpWho(ctx, lookTimeout)
	if err == nil || ctx.Err() == nil { // else they left, which tells nothing
		s.names.keep(whoKey(ctx), name)
	}
	return name
}

// KnownWho is Who without a call to storage. known tells whether Who would make
// none either.
func (s *Service) KnownWho(ctx context.Context) (name string, known bool) {
	if name, known := signedIn(ctx); known {
		return name, true
	}
	return s.names.get(whoKey(ctx))
}

// signedIn is the name that was given, or that there is nothing to find one by.
func signedIn(ctx context.Context) (name string, known bool) {
	info := okapi.FromContext(ctx)
	return fitName(info.UserName), info.UserName != "" || info.UserID == ""
}

// who names who acts, for the history of changes: as they signed in, else by the
// record of the user. No name is no reason to refuse a change, as the user's id is
// kept too.
func (s *Service) who(ctx context.Context) string {
	name, known := signedIn(ctx)
	if !known {
		name, _ = s.lookUpWho(ctx, whoTimeout) // which logs why there is none
	}
	return name
}

// lookUpWho finds the name in the record of the user in ctx; empty for none.
func (s *Service) lookUpWho(ctx context.Context, timeout time.Duration) (string, error) {
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

// fitName makes a name one that storage keeps.
func fitName(name string) string {
	name = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unprintable(r) {
			return -1
		}
		return r
	}, name))
	if runes := []rune(name); len(runes) > schemas.MaxChangeName {
		name = strings.TrimSpace(string(runes[:schemas.MaxChangeName]))
	}
	return name
}

// names keeps those of who looked.
type names struct {
	mu   sync.Mutex
	kept map[nameKey]keptName
}

type nameKey struct {
	tenant okapi.Tenant
	user   string
}

type keptName struct {
	name  string
	until time.Time
}

func whoKey(ctx context.Context) nameKey {
	id, _ := okapi.TenantFrom(ctx) // without one storage answers nothing
	return nameKey{id, okapi.FromContext(ctx).UserID}
}

func newNames() *names { return &names{kept: map[nameKey]keptName{}} }

func (n *names) get(key nameKey) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k, ok := n.kept[key]
	if !ok || !time.Now().Before(k.until) {
		return "", false
	}
	return k.name, true
}

func (n *names) keep(key nameKey, name string) {
	age := nameAge
	if name == "" {
		age = noNameAge
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if old, ok := n.kept[key]; ok && name == "" && old.name != "" && time.Now().Before(old.until) {
		return // somebody else found it meanwhile
	}
	if len(n.kept) >= maxNames {
		clear(n.kept) // more than any library has staff
	}
	n.kept[key] = keptName{name, time.Now().Add(age)}
}
