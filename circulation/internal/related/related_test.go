package related_test

import (
	"context"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/related"
)

const bookID, goneID = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378", "77477611-ab44-4082-a0d8-42f7acdfde11"

// records has one item, and nothing else.
type records struct{ related.Records }

func (records) Items(context.Context, []string) ([]library.Item, error) {
	return []library.Item{{ID: bookID}}, nil
}

func TestFetch_FindsByIDsInCapitalsWhatExists(t *testing.T) {
	t.Parallel()
	book := strings.ToUpper(bookID)
	f, err := related.Fetch(t.Context(), records{}, related.Wanted{Items: []string{book, goneID}})
	if err != nil || f.Items[book].ID != bookID || f.Items[bookID].ID != bookID {
		t.Errorf("got %+v, %v, want the item", f, err)
	}
	if _, exists := f.Items[goneID]; exists {
		t.Error("got an item that does not exist")
	}
}
