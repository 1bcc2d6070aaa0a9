package schemas_test

import (
	"regexp"
	"testing"

	"checkoutlock/schemas"
)

func TestIsUUID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"0bab56e5-1ab6-4ac2-afdf-8b2df0434378":          true,
		"0BAB56E5-1AB6-4AC2-AFDF-8B2DF0434378":          true,
		"":                                              false,
		"0bab56e51ab64ac2afdf8b2df0434378":              false,
		"{0bab56e5-1ab6-4ac2-afdf-8b2df0434378}":        false,
		"urn:uuid:0bab56e5-1ab6-4ac2-afdf-8b2df0434378": false,
		"0bab56e5-1ab6-4ac2-afdf-8b2df043437g":          false,
	} {
		if got := schemas.IsUUID(id); got != want {
			t.Errorf("%q: got %t, want %t", id, got, want)
		}
	}
}

func TestIsFolioUUID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"0bab56e5-1ab6-4ac2-afdf-8b2df0434378":  true,
		"0BAB56E5-1AB6-1AC2-8FDF-8B2DF0434378":  true,
		"01890a5d-ac96-774b-bcce-b302099a8057":  false,
		"0bab56e5-1ab6-4ac2-cfdf-8b2df0434378":  false,
		"00000000-0000-0000-0000-000000000000":  false,
		"x0bab56e5-1ab6-4ac2-afdf-8b2df0434378": false,
		"0bab56e51ab64ac2afdf8b2df0434378":      false,
		"":                                      false,
	} {
		if got := schemas.IsFolioUUID(id); got != want {
			t.Errorf("%q: got %t, want %t", id, got, want)
		}
	}
}

func TestIsFolioUUID_MatchesThePattern(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(schemas.FolioUUID)
	const id = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378"
	for place := range id {
		for char := range 256 {
			changed := id[:place] + string([]byte{byte(char)}) + id[place+1:]
			if got := schemas.IsFolioUUID(changed); got != pattern.MatchString(changed) {
				t.Errorf("%q: got %t", changed, got)
			}
		}
	}
}
