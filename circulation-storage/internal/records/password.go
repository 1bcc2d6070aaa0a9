package records

import (
	"fmt"

	"golang.org/x/crypto/bcrypt"

	"checkoutlock/schemas/fault"
)

// A password has 8 to 72 bytes. bcrypt reads no more, so that of two longer ones one could stand for
// the other.
const minPassword, maxPassword = 8, 72

// HashPassword returns the hash by which MatchesHash knows a password again. It takes a processor for
// about 50 ms. Fault: Invalid for a password of less than 8 or more than 72 bytes, which it does not
// repeat.
func HashPassword(password string) (string, error) {
	return hashSecret("password", password, minPassword)
}

// HashPIN is HashPassword for a patron's PIN, which has 1 to 72 bytes: FOLIO takes any.
func HashPIN(pin string) (string, error) { return hashSecret("pin", pin, 1) }

func hashSecret(field, secret string, atLeast int) (string, error) {
	if len(secret) < atLeast || len(secret) > maxPassword {
		message := fmt.Sprintf("%s must have from %d to %d bytes", field, atLeast, maxPassword)
		return "", fault.StorageRefusal(message, fault.Param(field, "(hidden)"))
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(secret), bcrypt.DefaultCost)
	if err != nil {
		return "", fmt.Errorf("making a hash: %w", err)
	}
	return string(hash), nil
}

// noPassword is the hash of 32 random bytes: what a password is compared with where there is no hash.
const noPassword = //nolint:gosec // it opens nothing
"$2a$10$KQtY7RfMABCRvWfMDgwpbepzislG4lT8BQ5wDycKpOMPhhD0Xxdge"

// MatchesHash reports whether the hash is that of the password. An empty hash is no password's. It
// takes as long then, so that the time does not tell which names exist.
func MatchesHash(hash, password string) bool {
	known := hash != ""
	if !known {
		hash = noPassword
	}
	err := bcrypt.CompareHashAndPassword([]byte(hash), []byte(password))
	return err == nil && known && len(password) <= maxPassword
}
