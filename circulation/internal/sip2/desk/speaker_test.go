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
	for name, tt := range map[string]struct {
		ctx   context.Context
		warns bool
	}{
		"before the login": {ctx: t.Context()},
		"after the login":  {ctx: okapi.WithTenant(t.Context(), library), warns: true},
	} {
		b := newBackend()
		b.noTexts = errors.New("gone")
		got := b.desk(t).Text(tt.ctx, b.terminal, "", "machine.notSignedIn")
		if warns := strings.Contains(b.log.String(), "texts cannot be used"); warns != tt.warns || got == "" {
			t.Errorf("%s: got %q, and the log has %q", name, got, b.log.String())
		}
	}
}
