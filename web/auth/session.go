package auth

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

const (
	// renewAfter is how old a cookie gets before a page renews it.
	renewAfter = time.Minute
	// clockSkew is how far the clocks of instances may differ.
	clockSkew = time.Minute
)

// session is one person's sign-in. A sealed cookie carries it, so any instance with the same secret
// knows it.
type session struct {
	ID      uuid.UUID `json:"id"`
	Name    string    `json:"name"`
	Groups  []string  `json:"groups,omitempty"` // at the provider, those that grant permissions
	Began   time.Time `json:"began"`
	Used    time.Time `json:"used"`    // by a page
	Checked time.Time `json:"checked"` // by the provider
}

func (s session) isOver(l Limits, now time.Time) bool {
	return s.ID == uuid.Nil || now.Sub(s.Used) >= l.Idle || now.Sub(s.Began) >= l.Longest || s.Used.Sub(now) > clockSkew
}

// SignOuts remembers the sessions that ended by a sign-out, for all instances of the service. Without
// it a copy of a cookie would still count.
type SignOuts interface {
	// SignOut ends a session. Nothing needs to remember it after until.
	SignOut(ctx context.Context, session uuid.UUID, until time.Time) error
	// IsSignedOut reports whether SignOut was called for the session, by any instance.
	IsSignedOut(ctx context.Context, session uuid.UUID) (bool, error)
}

// keyRounds makes it slow to guess the password from a cookie (OWASP's figure of 2023).
const keyRounds = 600_000

// newSealer returns the cipher of cookies. Its key follows from the secret, so another secret ends
// all sessions.
func newSealer(secret string, rounds int) (cipher.AEAD, error) {
	key, err := pbkdf2.Key(sha256.New, secret, []byte("staff session"), rounds, 32)
	if err != nil {
		return nil, fmt.Errorf("making the key of cookies: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("making the cipher of cookies: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// seal returns a value that unseal reads for the same cookie only.
func (g *Guard) seal(cookie string, value any) (string, error) {
	sealer, err := g.sealer()
	if err != nil {
		return "", err
	}
	plain, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("writing a cookie: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(sealer.Seal(nil, nil, plain, []byte(cookie))), nil //nolint:gosec // the cipher chooses a nonce itself
}

// unseal reads a value of seal into the pointer, and reports whether it is one.
func (g *Guard) unseal(cookie, text string, value any) bool {
	sealer, err := g.sealer()
	if err != nil {
		return false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return false
	}
	plain, err := sealer.Open(nil, nil, sealed, []byte(cookie))
	return err == nil && json.Unmarshal(plain, value) == nil
}
