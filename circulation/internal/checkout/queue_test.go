package checkout_test

import (
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

var errQueue = fault.New(fault.RequestChanged, "the queue is another")

const (
	open    = schemas.RequestNotYetFilled
	refused = "Moby Dick (Barcode: book) cannot be checked out to user Reader, Ann because it has been requested by " +
		"another patron"
)

func TestQueue(t *testing.T) {
	t.Parallel()
	elsewhere := librarytest.NewRequest("1", librarytest.CarlID, "Page", "Title", open, 1)
	elsewhere.ItemID = librarytest.OtherID
	recalled := elsewhere
	recalled.RequestType = "Recall"
	anyCopy := librarytest.NewRequest("1", librarytest.CarlID, "Hold", "Title", open, 1)
	anyCopy.ItemID = ""
	ours := anyCopy
	ours.RequesterID = librarytest.AnnID
	tests := map[string]struct {
		queue  []schemas.QueuedRequest
		titles bool
		fills  string
		want   []string
	}{
		"no request": {},
		"Ann is first": {
			queue: []schemas.QueuedRequest{
				librarytest.NewRequest("1", librarytest.AnnID, "Page", "Item", open, 1),
				librarytest.NewRequest("2", librarytest.CarlID, "Hold", "Item", open, 2),
			},
			fills: "1",
		},
		"Ann's book awaits her": {
			queue: []schemas.QueuedRequest{
				librarytest.NewRequest("1", librarytest.AnnID, "Hold", "Item", schemas.RequestAwaitingPickup, 1),
			},
			fills: "1",
		},
		"Ann is first, by her id in upper case": {
			queue: []schemas.QueuedRequest{
				librarytest.NewRequest("1", strings.ToUpper(librarytest.AnnID), "Hold", "Item", open, 1),
			},
			fills: "1",
		},
		"Ann is second": {
			queue: []schemas.QueuedRequest{
				librarytest.NewRequest("2", librarytest.AnnID, "Hold", "Item", open, 2),
				librarytest.NewRequest("1", librarytest.CarlID, "Hold", "Item", open, 1),
			},
			want: []string{refused},
		},
		"it awaits another patron": {
			queue: []schemas.QueuedRequest{
				librarytest.NewRequest("1", librarytest.CarlID, "Hold", "Item", schemas.RequestAwaitingPickup, 1),
			},
			want: []string{refused},
		},
		"it is on its way to them": {
			queue: []schemas.QueuedRequest{
				librarytest.NewRequest("1", librarytest.CarlID, "Recall", "Item", schemas.RequestInTransit, 1),
			},
			want: []string{refused},
		},
		"theirs is closed": {
			queue: []schemas.QueuedRequest{
				librarytest.NewRequest("1", librarytest.CarlID, "Hold", "Item", "Closed - Filled", 1),
			},
		},
		"a title's, switched off": {
			queue: []schemas.QueuedRequest{librarytest.NewRequest("1", librarytest.CarlID, "Hold", "Title", open, 1)},
		},
		"a title's, switched on": {
			queue: []schemas.QueuedRequest{anyCopy}, titles: true, want: []string{refused},
		},
		"Ann's, of the title":      {queue: []schemas.QueuedRequest{ours}, titles: true, fills: "1"},
		"another copy is paged":    {queue: []schemas.QueuedRequest{elsewhere}, titles: true},
		"another copy is recalled": {queue: []schemas.QueuedRequest{recalled}, titles: true},
		"this copy is paged": {
			queue:  []schemas.QueuedRequest{librarytest.NewRequest("1", librarytest.CarlID, "Page", "Title", open, 1)},
			titles: true, want: []string{refused},
		},
		"another copy is paged, Ann has a hold": {
			queue:  []schemas.QueuedRequest{elsewhere, librarytest.NewRequest("2", librarytest.AnnID, "Hold", "Item", open, 2)},
			titles: true, fills: "2",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBackend()
			w.Queue, w.Titles = tt.queue, tt.titles
			_, err := w.checkOut(t)
			if got := librarytest.Messages(err); !slices.Equal(got, tt.want) {
				t.Errorf("got %q (%v), want %q", got, err, tt.want)
			}
			if err == nil && (w.commits[0].FilledRequestID != tt.fills || w.commits[0].TitleLevel != tt.titles) {
				t.Errorf("committed %+v, want it to fill %q", w.commits[0], tt.fills)
			}
		})
	}
}

func TestQueue_RefusesAPatronWithoutAFirstName(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.Patron.Personal.FirstName = ""
	w.Queue = []schemas.QueuedRequest{librarytest.NewRequest("1", librarytest.CarlID, "Hold", "Item", open, 1)}
	_, err := w.checkOut(t)
	if want := strings.Replace(refused, "Reader, Ann", "Reader", 1); !slices.Equal(librarytest.Messages(err),
		[]string{want}) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestQueue_IsReadOnceMoreAfterAChange(t *testing.T) {
	t.Parallel()
	change := func(w *backend, queue ...schemas.QueuedRequest) {
		w.onStep = func(s checkout.Step) {
			if s == checkout.Locked {
				w.Queue = queue
			}
		}
	}
	t.Run("the borrower asked for it", func(t *testing.T) {
		t.Parallel()
		w := newBackend()
		w.commit = []error{errQueue}
		change(w, librarytest.NewRequest("1", librarytest.AnnID, "Hold", "Item", open, 1))
		if _, err := w.checkOut(t); err != nil || w.commits[0].FilledRequestID != "" || w.commits[1].FilledRequestID != "1" {
			t.Errorf("got %v, committed %+v", err, w.commits)
		}
		if !slices.Equal(w.again, []string{"REQUEST_CHANGED"}) {
			t.Errorf("counted as %v", w.again)
		}
	})
	t.Run("the borrower's request is gone", func(t *testing.T) {
		t.Parallel()
		w := newBackend()
		w.Queue, w.commit = []schemas.QueuedRequest{
			librarytest.NewRequest("1", librarytest.AnnID, "Hold", "Item", open, 1),
		}, []error{errQueue}
		change(w)
		if _, err := w.checkOut(t); err != nil || w.commits[0].FilledRequestID != "1" || w.commits[1].FilledRequestID != "" {
			t.Errorf("got %v, committed %+v", err, w.commits)
		}
	})
	t.Run("another patron asked for it", func(t *testing.T) {
		t.Parallel()
		w := newBackend()
		w.commit = []error{errQueue}
		change(w, librarytest.NewRequest("1", librarytest.CarlID, "Hold", "Item", open, 1))
		_, err := w.checkOut(t)
		if !slices.Equal(librarytest.Messages(err), []string{refused}) || len(w.commits) != 1 || len(w.released) != 1 {
			t.Errorf("got %v, %d commits, released %v", err, len(w.commits), w.released)
		}
	})
	t.Run("changed twice", func(t *testing.T) {
		t.Parallel()
		w := newBackend()
		w.commit = []error{errQueue, errQueue}
		if _, err := w.checkOut(t); !fault.Is(err, fault.RequestChanged) || len(w.commits) != 2 || len(w.released) != 1 {
			t.Errorf("got %v, %d commits, released %v", err, len(w.commits), w.released)
		}
	})
}

func TestQueue_ShortensALoanWhileAHoldWaits(t *testing.T) {
	t.Parallel()
	const usual, alternate = `"dueDate":"2026-03-15T10:00:00.000Z"`, `"dueDate":"2026-03-03T10:00:00.000Z"`
	own := librarytest.NewRequest("1", librarytest.AnnID, "Hold", "Item", open, 1)
	tests := map[string]struct {
		queue []schemas.QueuedRequest
		want  string
	}{
		"no request":      {nil, usual},
		"only Ann waited": {[]schemas.QueuedRequest{own}, usual},
		"a hold waits behind her": {
			[]schemas.QueuedRequest{own, librarytest.NewRequest("2", librarytest.CarlID, "Hold", "Item", open, 2)}, alternate,
		},
		"a hold that has a book": {
			[]schemas.QueuedRequest{
				own, librarytest.NewRequest("2", librarytest.CarlID, "Hold", "Item", schemas.RequestAwaitingPickup, 2),
			},
			usual,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBackend()
			w.Policy = strings.TrimSuffix(w.Policy, "}") +
				`,"requestManagement":{"holds":{"alternateCheckoutLoanPeriod":{"duration":2,"intervalId":"Days"}}}}`
			w.Queue = tt.queue
			if _, err := w.checkOut(t); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(w.commits[0].Loan), tt.want) {
				t.Errorf("lent %s, want %s", w.commits[0].Loan, tt.want)
			}
		})
	}
}

// Ann fills her hold while Carl recalls the book, so she gets it for as long as a recalled loan.
func TestQueue_ShortensALoanWhileARecallWaits(t *testing.T) {
	t.Parallel()
	own := librarytest.NewRequest("1", librarytest.AnnID, "Recall", "Item", open, 1)
	recall := librarytest.NewRequest("2", librarytest.CarlID, "Recall", "Item", open, 2)
	elsewhere := recall
	elsewhere.ItemID = librarytest.OtherID
	const (
		usual  = `"dueDate":"2026-03-15T10:00:00.000Z"`
		five   = `"dueDate":"2026-03-06T10:00:00.000Z"`
		marked = `"dueDateChangedByRecall":true`
	)
	for _, tt := range []struct {
		name     string
		queue    []schemas.QueuedRequest
		days     string // of the return interval
		change   func(*backend)
		want     string
		recalled bool
	}{
		{name: "only Ann waited", queue: []schemas.QueuedRequest{own}, days: "5", want: usual},
		{
			name: "a recall waits behind her", queue: []schemas.QueuedRequest{own, recall}, days: "5", want: five,
			recalled: true,
		},
		{name: "a recall of another copy", queue: []schemas.QueuedRequest{own, elsewhere}, days: "5", want: usual},
		{
			name: "a recall cannot shorten the guaranteed period", queue: []schemas.QueuedRequest{own, recall},
			days: `5,"intervalId":"Days"},"minimumGuaranteedLoanPeriod":{"duration":9`,
			want: `"dueDate":"2026-03-10T10:00:00.000Z"`, recalled: true,
		},
		{
			name: "the guaranteed period ends after her card", queue: []schemas.QueuedRequest{own, recall},
			days:   `1,"intervalId":"Days"},"minimumGuaranteedLoanPeriod":{"duration":9`,
			change: func(w *backend) { w.Patron.ExpirationDate.Time = librarytest.Today.AddDate(0, 0, 3) },
			want:   `"dueDate":"2026-03-04T10:00:00.000Z"`, recalled: true,
		},
		{
			name: "the guaranteed period ends after the schedule", queue: []schemas.QueuedRequest{own, recall},
			days: `1,"intervalId":"Days"},"minimumGuaranteedLoanPeriod":{"duration":9`,
			change: func(w *backend) {
				w.Policy = strings.Replace(w.Policy, `"Rolling"`, `"Rolling","fixedDueDateScheduleId":"s"`, 1)
				w.Schedule = `{"schedules":[{"from":"2026-01-01","to":"2026-06-30","due":"2026-03-05T22:00:00Z"}]}`
			},
			want: `"dueDate":"2026-03-05T22:00:00.000Z"`, recalled: true,
		},
		{name: "due before", queue: []schemas.QueuedRequest{own, recall}, days: "50", want: usual, recalled: true},
	} {
		w := newBackend()
		if tt.change != nil {
			tt.change(w)
		}
		w.Policy = strings.TrimSuffix(w.Policy, "}") +
			`,"requestManagement":{"recalls":{"recallReturnInterval":{"duration":` + tt.days + `,"intervalId":"Days"}}}}`
		w.Queue = tt.queue
		if _, err := w.checkOut(t); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if c := w.commits[0]; !strings.Contains(string(c.Loan), tt.want) ||
			strings.Contains(string(c.Loan), marked) != tt.recalled || c.Recalled == nil || *c.Recalled != tt.recalled {
			t.Errorf("%s: lent %s, recalled %v, want %s", tt.name, c.Loan, c.Recalled, tt.want)
		}
	}
}

func TestQueue_SeesARecallThatCameMeanwhile(t *testing.T) {
	t.Parallel()
	own := librarytest.NewRequest("1", librarytest.AnnID, "Hold", "Item", open, 1)
	w := newBackend()
	w.Queue, w.commit = []schemas.QueuedRequest{own}, []error{errQueue}
	w.onStep = func(s checkout.Step) {
		if s == checkout.Locked {
			w.Queue = []schemas.QueuedRequest{own, librarytest.NewRequest("2", librarytest.CarlID, "Recall", "Item", open, 2)}
		}
	}
	if _, err := w.checkOut(t); err != nil || *w.commits[0].Recalled || !*w.commits[1].Recalled ||
		!strings.Contains(string(w.commits[1].Loan), `"dueDate":"2026-03-01T10:00:00.000Z"`) {
		t.Errorf("got %v, committed %+v, want the second one recalled", err, w.commits)
	}
}

func TestQueue_RefusesALoanByAnInvalidRecallPeriod(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.Policy = strings.TrimSuffix(w.Policy, "}") +
		`,"requestManagement":{"recalls":{"recallReturnInterval":{"duration":0,"intervalId":"Days"}}}}`
	w.Queue = []schemas.QueuedRequest{
		librarytest.NewRequest("1", librarytest.AnnID, "Hold", "Item", open, 1),
		librarytest.NewRequest("2", librarytest.CarlID, "Recall", "Item", open, 2),
	}
	_, err := w.checkOut(t)
	if want := []string{
		`the duration "0" in "recallReturnInterval" is invalid`,
	}; !slices.Equal(librarytest.Messages(err), want) || len(w.commits) != 0 {
		t.Errorf("got %v, want %q", err, want)
	}
}
