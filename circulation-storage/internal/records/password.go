package records

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/alexedwards/argon2id"
	"golang.org/x/crypto/bcrypt"

	"checkoutlock/schemas/fault"
)

// A password has 8 to 72 bytes. bcrypt, which may have made an older hash, reads no more.
const minPassword, maxPassword = 8, 72

// hashParams are the cheapest ones of argon2id that OWASP recommends, with the least memory: 7 MiB,
// five passes. All machines of a library may sign in within seconds, so a hash must not take long.
var hashParams = argon2id.Params{Memory: 7 << 10, Iterations: 5, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// HashPassword returns the hash by which MatchesHash knows a password again. It takes a processor for
// about 16 ms. Fault: Invalid for a password of less than 8 or more than 72 bytes, or with what a field
// of SIP2 cannot hold. It does not repeat the password.
func HashPassword(password string) (string, error) {
	if strings.ContainsFunc(password, func(r rune) bool { return r == '|' || r < ' ' }) {
		return "", fault.StorageRefusal("password must be without | and control characters", fault.Param("password", "(hidden)"))
	}
	return hashSecret("password", password, minPassword)
}

// HashPIN is HashPassword for a patron's PIN, which has 1 to 72 bytes: FOLIO takes any.
func HashPIN(pin string) (string, error) { return hashSecret("pin", pin, 1) }

func hashSecret(field, secret string, atLeast int) (string, error) {
	if len(secret) < atLeast || len(secret) > maxPassword {
		message := fmt.Sprintf("%s must have from %d to %d bytes", field, atLeast, maxPassword)
		return "", fault.StorageRefusal(message, fault.Param(field, "(hidden)"))
	}
	hash, err := argon2id.CreateHash(secret, &hashParams)
	if err != nil {
		return "", fmt.Errorf("making a hash: %w", err)
	}
	return hash, nil
}

// noPassword is the hash of 32 random bytes: what a password is compared with where there is no hash.
const noPassword = //nolint:gosec // it opens nothing
"$argon2id$v=19$m=7168,t=5,p=1$eoQoWU7kZCO7aZOURgzaqQ$Apu5A7plMFq1IAnbHBqaYnYWxXZmBn1nZVHCfz0ns2E"

// MatchesHash reports whether the hash, of argon2id or bcrypt, is that of the password. An empty hash
// is no password's. It takes as long then, so that the time does not tell which names exist.
func MatchesHash(hash, password string) bool {
	return compareHash(cmp.Or(hash, noPassword), password) && hash != "" && len(password) <= maxPassword
}

func compareHash(hash, password string) bool {
	if strings.HasPrefix(hash, "$argon2id$") {
		right, err := argon2id.ComparePasswordAndHash(password, hash)
		return err == nil && right
	}
	return bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) == nil
}
