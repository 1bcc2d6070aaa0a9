package checkout_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas"
)

func TestCheckOutLine_NamesNoPatron(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := newBackend()
	w.Queue = []schemas.QueuedRequest{librarytest.NewRequest("1", librarytest.CarlID, "Hold", "Item", open, 1)}
	s := w.service()
	s.Log = slog.New(slog.NewTextHandler(&log, nil))
	_, err := s.CheckOut(t.Context(), checkout.Request{
		ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID,
	})
	if err == nil || !strings.Contains(err.Error(), "Reader, Ann") {
		t.Fatalf("got %v, want a refusal that names the patron", err)
	}
	if line := log.String(); !strings.Contains(line, "cannot be checked out to user … because") ||
		strings.Contains(line, "Reader") {
		t.Errorf("logged %s", line)
	}
}

func TestCheckOutLine_MasksTheBarcodesOfPatronAndProxy(t *testing.T) {
	t.Parallel()
	const card, proxy, book = "21234567890123", "29876543210987", "31111111111111"
	tests := []struct {
		name   string
		change func(w *backend)
		item   string
		want   []string
	}{
		{name: "a loan", item: book, want: []string{"outcome=lent", "patron=****0123", "item=" + book}},
		{
			name: "a card in place of the book", item: card,
			want: []string{"item=****0123", `why="No item with barcode ****0123 could be found"`},
		},
		{name: "a message of a block", item: book, want: []string{
			"Card ****0123 is blocked", "item=" + book,
		}, change: func(w *backend) {
			w.Automated = []library.AutomatedBlock{{BlockBorrowing: true, Message: "Card " + card + " is blocked"}}
		}},
		{
			name: "a failure that quotes the proxy", item: book, want: []string{"no proxy ****0987 here"},
			change: func(w *backend) {
				w.acquire = []error{errors.New("no proxy " + proxy + " here")}
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			w := newBackend()
			w.Patron.Barcode, w.Book.Barcode = card, book
			carl := w.Patron
			carl.ID = librarytest.CarlID
			w.Others = map[string]library.User{proxy: carl}
			w.proxies = []library.ProxyRelation{{Status: "Active"}}
			if tt.change != nil {
				tt.change(w)
			}
			s := w.service()
			s.Log = slog.New(slog.NewTextHandler(&log, nil))
			_, err := s.CheckOut(t.Context(), checkout.Request{
				ItemBarcode: tt.item, UserBarcode: card, ProxyUserBarcode: proxy, ServicePointID: librarytest.DeskID,
			})
			for _, want := range tt.want {
				if !strings.Contains(log.String(), want) {
					t.Errorf("logged %s (%v), want %s", log.String(), err, want)
				}
			}
			if line := log.String(); strings.Contains(line, card) || strings.Contains(line, proxy) {
				t.Errorf("logged %s, which names a patron", line)
			}
		})
	}
}
