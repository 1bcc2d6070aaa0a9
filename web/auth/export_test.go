package auth

import (
	"context"
	"net/http"
)

// SetTransport makes calls to the provider go to rt.
func (g *Guard) SetTransport(rt http.RoundTripper) { g.provider.client.Transport = rt }

// MakeKeysFast makes the key of cookies without the time that slows down guesses.
func (g *Guard) MakeKeysFast() { g.rounds = 1 }

// Guess sends a wrong password, and returns how many callers are remembered after it, and the refusal.
func (g *Guard) Guess(peer string) (remembered int, refusal error) {
	refusal = g.checkPassword(context.Background(), peer, "ann", "wrong")
	return len(g.attempts.callers), refusal
}
