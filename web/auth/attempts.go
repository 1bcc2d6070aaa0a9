package auth

import (
	"context"
	"log/slog"
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/schemas/fault"
)

const (
	// maxSlowed bounds the callers that are remembered.
	maxSlowed = 10_000
	// logInterval is how often wrong passwords are logged at most.
	logInterval = time.Minute
)

// allowance is how many wrong passwords a caller may send at once, and the time that adds one.
type allowance struct {
	most  float64
	every time.Duration
}

var (
	// ofName is for one name from one address.
	ofName = allowance{5, 10 * time.Second}
	// ofAddress is for all names from one address, which may be that of a proxy.
	ofAddress = allowance{50, time.Second}
)

// caller is who sends passwords. An empty name is all names.
type caller struct{ address, name string }

// left is what is left of an allowance at a time.
type left struct {
	allowance

	tries float64
	at    time.Time
}

func (l left) now(now time.Time) float64 {
	return math.Min(l.most, l.tries+float64(now.Sub(l.at))/float64(l.every))
}

// attempts slows down callers that send wrong passwords. It counts and logs those. It is safe for
// concurrent use.
type attempts struct {
	log   *slog.Logger
	count *prometheus.CounterVec

	mu       sync.Mutex
	callers  map[caller]left
	logged   time.Time // the last line
	unlogged int       // wrong passwords since then
}

func newAttempts(log *slog.Logger) *attempts {
	count := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "staff_refused_passwords_total",
		Help: "Passwords of staff that were refused: wrong ones, and those that came too soon after wrong ones.",
	}, []string{"reason"})
	count.WithLabelValues("wrong")
	count.WithLabelValues("too_soon")
	return &attempts{log: log, count: count, callers: map[caller]left{}}
}

// check returns nil if isRight does. A caller that sent too many wrong passwords is refused before
// that, so that the answer says nothing about the password. Right ones take nothing of the
// allowances. Faults: Unauthorized; TooManyTries with the time until the next try.
func (a *attempts) check(ctx context.Context, peer, name string, isRight func() bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	address := networkOf(peer)
	allowances := map[caller]left{}
	for who, most := range map[caller]allowance{{address, name}: ofName, {address, ""}: ofAddress} {
		has := a.callers[who] // a new one has its whole allowance, because its time is long ago
		has.allowance = most
		has.tries, has.at = has.now(now), now
		if has.tries < 1 {
			a.count.WithLabelValues("too_soon").Inc()
			wait := time.Duration((1 - has.tries) * float64(has.every))
			refused := fault.New(fault.TooManyTries, "Too many wrong passwords came from here. Wait for %d s, then try again.",
				int(math.Ceil(wait.Seconds())))
			refused.RetryAfter = wait
			return refused
		}
		has.tries--
		allowances[who] = has
	}
	if isRight() {
		return nil
	}
	for who, has := range allowances {
		a.keep(who, has, now)
	}
	a.note(ctx, peer, now)
	return fault.New(fault.Unauthorized, "The password is wrong")
}

// keep remembers a caller. If there are too many, it forgets those with a whole allowance, or any.
func (a *attempts) keep(who caller, has left, now time.Time) {
	if len(a.callers) >= maxSlowed {
		for other, l := range a.callers {
			if l.now(now) >= l.most {
				delete(a.callers, other)
			}
		}
		for other := range a.callers {
			if len(a.callers) < maxSlowed {
				break
			}
			delete(a.callers, other)
		}
	}
	a.callers[who] = has
}

// note counts a wrong password, and logs those since the last line.
func (a *attempts) note(ctx context.Context, peer string, now time.Time) {
	a.count.WithLabelValues("wrong").Inc()
	a.unlogged++
	if now.Sub(a.logged) < logInterval {
		return
	}
	a.log.WarnContext(ctx, "wrong password for the staff pages", "peer", peer, "times", a.unlogged)
	a.logged, a.unlogged = now, 0
}

// networkOf returns the part of an address that one caller cannot choose: of IPv6 the first 64 bits.
func networkOf(peer string) string {
	ip, err := netip.ParseAddr(peer)
	if err != nil || ip.Is4() {
		return peer
	}
	return netip.PrefixFrom(ip, 64).Masked().String()
}
