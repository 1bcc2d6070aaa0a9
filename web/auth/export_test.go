package auth

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// SetTransport makes calls to the provider go to rt.
func (g *Guard) SetTransport(rt http.RoundTripper) { g.provider.client.Transport = rt }

// MakeKeysFast makes the key of cookies without the time that slows down guesses.
func (g *Guard) MakeKeysFast() { g.rounds = 1 }

// IsOver reports whether a session is over that was used so long ago.
func (g *Guard) IsOver(ago time.Duration) bool {
	now := time.Now()
	return session{ID: uuid.New(), Began: now, Used: now.Add(-ago)}.isOver(g.limits, now)
}

// Guess sends a wrong password, and returns how many callers are remembered after it, and the refusal.
func (g *Guard) Guess(peer string) (remembered int, refusal error) {
	refusal = g.checkPassword(context.Background(), peer, "ann", "wrong")
	return len(g.attempts.callers), refusal
}
