package auth

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"checkoutlock/schemas/fault"
)

const (
	// maxSlowed bounds the callers that are remembered.
	maxSlowed = 10_000
	// logInterval is how often wrong passwords are logged at most.
	logInterval = time.Minute
)

// caller is who sends passwords. An empty name is all names.
type caller struct{ address, name string }

// attempts slows down callers that send wrong passwords. It counts and logs those. It is safe for
// concurrent use.
type attempts struct {
	log   *slog.Logger
	count *prometheus.CounterVec

	mu       sync.Mutex
	callers  map[caller]*rate.Limiter // the wrong passwords that each may still send
	logged   time.Time                // the last line
	unlogged int                      // wrong passwords since then
}

func newAttempts(log *slog.Logger) *attempts {
	count := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "staff_refused_passwords_total",
		Help: "Passwords of staff that were refused: wrong ones, and those that came too soon after wrong ones.",
	}, []string{"reason"})
	count.WithLabelValues("wrong")
	count.WithLabelValues("too_soon")
	return &attempts{log: log, count: count, callers: map[caller]*rate.Limiter{}}
}

// check returns nil if isRight does. A caller that sent too many wrong passwords is refused before
// that, so that the answer says nothing about the password. Right ones take nothing of the
// allowances. Faults: Unauthorized; TooManyTries with the time until the next try.
func (a *attempts) check(ctx context.Context, peer, name string, isRight func() bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	address := networkOf(peer)
	allowances := map[caller]*rate.Limiter{ // how many wrong passwords at once, and the time that adds one
		{address, name}: rate.NewLimiter(rate.Every(10*time.Second), 5),
		{address, ""}:   rate.NewLimiter(rate.Every(time.Second), 50), // the address may be that of a proxy
	}
	for who, left := range allowances {
		if known := a.callers[who]; known != nil {
			left, allowances[who] = known, known
		}
		if tries := left.TokensAt(now); tries < 1 {
			a.count.WithLabelValues("too_soon").Inc()
			wait := time.Duration((1 - tries) / float64(left.Limit()) * float64(time.Second))
			refused := fault.New(fault.TooManyTries, "Too many wrong passwords came from here. Wait for %d s, then try again.",
				int(math.Ceil(wait.Seconds())))
			refused.RetryAfter = wait
			return refused
		}
	}
	if isRight() {
		return nil
	}
	for who, left := range allowances {
		left.AllowN(now, 1)
		a.keep(who, left, now)
	}
	a.note(ctx, peer, now)
	return fault.New(fault.Unauthorized, "The password is wrong")
}

// keep remembers a caller. If there are too many, it forgets those with a whole allowance, or any.
func (a *attempts) keep(who caller, left *rate.Limiter, now time.Time) {
	if len(a.callers) >= maxSlowed {
		maps.DeleteFunc(a.callers, func(_ caller, l *rate.Limiter) bool { return l.TokensAt(now) >= float64(l.Burst()) })
		for other := range a.callers {
			if len(a.callers) < maxSlowed {
				break
			}
			delete(a.callers, other)
		}
	}
	a.callers[who] = left
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
