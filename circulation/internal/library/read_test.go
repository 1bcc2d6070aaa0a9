package library_test

import (
	"context"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas"
)

// queues is a library whose queues have one request each, with the id of what they are asked for.
type queues struct {
	*librarytest.Records
	instanceID string // of the holdings
}

func (q queues) Holdings(context.Context, string) (library.Holdings, error) {
	return library.Holdings{ID: "h", InstanceID: q.instanceID}, nil
}

func (queues) ItemRequests(_ context.Context, id string) ([]schemas.QueuedRequest, error) {
	return []schemas.QueuedRequest{{ID: "item " + id}}, nil
}

func (queues) TitleRequests(_ context.Context, id string) ([]schemas.QueuedRequest, error) {
	return []schemas.QueuedRequest{{ID: "title " + id}}, nil
}

func TestReadCopy_ReadsTheQueueOfItemOrTitle(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		titleLevel bool
		instanceID string
		want       string
	}{
		"title level off":                 {instanceID: "i", want: "item book"},
		"title level on":                  {titleLevel: true, instanceID: "i", want: "title i"},
		"title level on, but no instance": {titleLevel: true, want: "item book"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			records := queues{Records: librarytest.New(), instanceID: tt.instanceID}
			_, queue, err := library.ReadCopy(t.Context(), records, library.Item{ID: "book"}, tt.titleLevel)
			if err != nil || len(queue.Requests) != 1 || queue.Requests[0].ID != tt.want || queue.TitleLevel != tt.titleLevel {
				t.Errorf("got %+v, %v, want the queue of %s", queue, err, tt.want)
			}
		})
	}
}

func TestKeepBarcode(t *testing.T) {
	t.Parallel()
	for barcode, kept := range map[string]bool{
		"book": true, strings.Repeat("ü", 600): true, strings.Repeat("b", 601): false, "a\x00b": false,
	} {
		if got := library.KeepBarcode(barcode); (got == barcode) != kept {
			t.Errorf("%.20q: got %.20q, want it kept: %t", barcode, got, kept)
		}
	}
}
