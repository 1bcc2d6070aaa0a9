package records

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"sync"
)

// maxVerified bounds the passwords that a Verified remembers: about 1 MB.
const maxVerified = 16_384

// Verified remembers which passwords matched which hashes, so that a machine which comes back costs no
// comparison. It keeps a keyed hash of both, with a random key that only this process has. The stored
// hash is a part, so another password, or none, counts at once. It is safe for concurrent use.
type Verified struct {
	key [sha256.Size]byte

	mu   sync.Mutex
	seen map[[sha256.Size]byte]struct{}
}

// NewVerified returns a Verified that remembers nothing.
func NewVerified() *Verified {
	v := &Verified{seen: map[[sha256.Size]byte]struct{}{}}
	_, _ = rand.Read(v.key[:]) // it never fails
	return v
}

// Has reports whether the password has matched the hash before.
func (v *Verified) Has(hash, password string) bool {
	entry := v.entry(hash, password)
	v.mu.Lock()
	defer v.mu.Unlock()
	_, seen := v.seen[entry]
	return seen
}

// Add remembers a match. If there are too many, it forgets any other one.
func (v *Verified) Add(hash, password string) {
	entry := v.entry(hash, password)
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.seen) >= maxVerified {
		for any := range v.seen {
			delete(v.seen, any)
			break
		}
	}
	v.seen[entry] = struct{}{}
}

// entry is the keyed hash of both. A stored hash has no zero byte.
func (v *Verified) entry(hash, password string) (sum [sha256.Size]byte) {
	mac := hmac.New(sha256.New, v.key[:])
	mac.Write([]byte(hash + "\x00" + password))
	mac.Sum(sum[:0])
	return sum
}
