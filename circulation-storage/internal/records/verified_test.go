package records_test

import (
	"strconv"
	"testing"

	"checkoutlock/circulation-storage/internal/records"
)

func TestVerified_KnowsOnlyWhatMatched(t *testing.T) {
	t.Parallel()
	v := records.NewVerified()
	v.Add("hash-1", "password-1")
	if !v.Has("hash-1", "password-1") {
		t.Error("what matched is forgotten")
	}
	for _, other := range [][2]string{
		{"hash-2", "password-1"}, {"hash-1", "password-2"}, {"", "password-1"}, {"hash-1", ""}, {"hash-1p", "assword-1"},
	} {
		if v.Has(other[0], other[1]) {
			t.Errorf("%q counts, and did not match", other)
		}
	}
	if records.NewVerified().Has("hash-1", "password-1") {
		t.Error("another process knows it")
	}
}

func TestVerified_IsBounded(t *testing.T) {
	t.Parallel()
	const bound = 16_384
	v := records.NewVerified()
	known := 0
	for i := range 2 * bound {
		v.Add("hash", strconv.Itoa(i))
	}
	for i := range 2 * bound {
		if v.Has("hash", strconv.Itoa(i)) {
			known++
		}
	}
	if known != bound || !v.Has("hash", strconv.Itoa(2*bound-1)) {
		t.Errorf("%d passwords are known, want %d with the last one", known, bound)
	}
}

func TestMatchesHash(t *testing.T) {
	t.Parallel()
	own, err := records.HashPassword("first-secret")
	if err != nil {
		t.Fatal(err)
	}
	const ofBcrypt = "$2a$04$T0yA1jFOVtCxwtHvXefS0u6J1pc5lhBYNlhjSXyucPtYOLkmHQblm"
	for _, tt := range []struct {
		name, hash, password string
		want                 bool
	}{
		{name: "right", hash: own, password: "first-secret", want: true},
		{name: "wrong", hash: own, password: "first-secreT"},
		{name: "empty", hash: own, password: ""},
		{name: "right, bcrypt", hash: ofBcrypt, password: "first-secret", want: true},
		{name: "wrong, bcrypt", hash: ofBcrypt, password: "second-secret"},
		{name: "no hash", password: "first-secret"},
		{name: "no hash and no password"},
		{name: "no hash that is known", hash: "$argon2id$v=19$nonsense", password: "first-secret"},
	} {
		if got := records.MatchesHash(tt.hash, tt.password); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}
