package admin_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
)

func TestService_FindPatron(t *testing.T) {
	t.Parallel()
	ann := library.User{ID: annID, Barcode: "569", Username: "ann"}
	ben := library.User{ID: staffID, Barcode: "570", Username: "569"}
	tests := map[string]struct {
		text     string
		named    []library.User
		searched map[string][]library.User
		want     string // the id of the patron
		near     int
		asked    []string
	}{
		"by barcode":  {text: "569", named: []library.User{ann}, want: annID, asked: []string{"named 569"}},
		"by username": {text: "ann", named: []library.User{ann}, want: annID, asked: []string{"named ann"}},
		"four words at most": {text: "a b c d e", asked: []string{
			"named a b c d e", "search a b c d, 6", "search a b c d, 6",
		}},
		"blanks": {text: "  "},
		"a barcode that is another's username": {
			text: "569", named: []library.User{ben, ann}, want: annID, asked: []string{"named 569"},
		},
		"by name": {
			text: "ann rea", searched: map[string][]library.User{"ann rea": {ann}}, want: annID,
			asked: []string{"named ann rea", "search ann rea, 6"},
		},
		"several": {
			text: "ann", searched: map[string][]library.User{"ann": {ann, ben}}, near: 2,
			asked: []string{"named ann", "search ann, 6"},
		},
		"with a typing error": {
			text: "annn", searched: map[string][]library.User{"ann": {ann}}, near: 1,
			asked: []string{"named annn", "search annn, 6", "search ann, 6"},
		},
		"nobody":             {text: "eve", asked: []string{"named eve", "search eve, 6", "search eve, 6"}},
		"no barcode or name": {text: strings.Repeat("9", 1000)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &backend{named: tt.named, searched: tt.searched}
			found, err := b.service().FindPatron(t.Context(), tt.text)
			id := ""
			if found.Patron != nil {
				id = found.Patron.ID
			}
			if err != nil || id != tt.want || len(found.Near) != tt.near || !slices.Equal(b.asked, tt.asked) {
				t.Errorf("got %q, %d near, %v after %q", id, len(found.Near), err, b.asked)
			}
		})
	}
}

func TestService_NamePastCallsOnceForEachKind(t *testing.T) {
	t.Parallel()
	var list []schemas.PastCheckOut
	for range 50 {
		list = append(list, schemas.PastCheckOut{ItemBarcode: "b1", ServicePointID: "desk", UserID: annID},
			schemas.PastCheckOut{ItemBarcode: "b2"})
	}
	b := &backend{users: []library.User{{ID: annID, Personal: library.Personal{FirstName: "Ann", LastName: "Reader"}}}}
	names := b.service().NamePast(t.Context(), list, true)
	if names.Titles["b1"] != "Moby Dick" || names.ServicePoints["desk"] != "Front desk" ||
		names.Patrons[annID] != "Reader, Ann" {
		t.Errorf("got %+v", names)
	}
	slices.Sort(b.asked)
	want := []string{"holdings [H1]", "instances [T1]", "items [b1 b2]", "service points [desk]", "users " + annID}
	if !slices.Equal(b.asked, want) {
		t.Errorf("asked %q, want %q", b.asked, want)
	}

	b = &backend{}
	if names := b.service().NamePast(t.Context(), list[:1], false); len(names.Patrons) != 0 || b.times() != 4 {
		t.Errorf("got %+v after %q, want no patrons", names, b.asked)
	}
	b = &backend{}
	if b.service().NamePast(t.Context(), nil, true); b.times() != 0 {
		t.Errorf("asked %q for nothing", b.asked)
	}
	b = &backend{err: errors.New("down")}
	if names := b.service().NamePast(t.Context(), list, true); len(names.Titles) != 0 {
		t.Errorf("got %+v", names)
	}
}
