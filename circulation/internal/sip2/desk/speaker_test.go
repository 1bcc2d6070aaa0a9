package desk_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"checkoutlock/schemas/okapi"
)

// A machine that has not signed in is in no library, so the library's own texts are not missing.
func TestText_WarnsOfMissingTextsInALibraryOnly(t *testing.T) {
	t.Parallel()
	library, err := okapi.ParseTenant("diku")
	if err != nil {
		t.Fatal(err)
	}
	b := newBackend()
	b.noTexts = errors.New("gone")
	warns := func(ctx context.Context) bool {
		if got := b.desk(t).Text(ctx, b.terminal, "", "machine.notSignedIn"); got == "" {
			t.Error("there is no text")
		}
		return strings.Contains(b.log.String(), "texts cannot be used")
	}
	if warns(t.Context()) || !warns(okapi.WithTenant(t.Context(), library)) {
		t.Errorf("the log has %q", b.log.String())
	}
}
