package history_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/history"
	"checkoutlock/circulation-storage/internal/sweep"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

func TestCheck_NamesWhatIsWrongAndWhere(t *testing.T) {
	t.Parallel()
	minusOne := -1
	good := schemas.PastCheckOut{ID: uuid.NewString(), Outcome: "lent"}
	bad := schemas.PastCheckOut{
		ID: "1", Outcome: "Lent", AgoMs: -1, TookMs: -1, WaitMs: &minusOne, Repeats: -1, UserID: "1", LoanID: "1", ServicePointID: "1",
		Code: strings.Repeat("é", 256), UserBarcode: strings.Repeat("é", 256), ItemBarcode: strings.Repeat("é", 256),
		RequestID: strings.Repeat("é", 256), Reason: strings.Repeat("é", 1001),
	}
	if err := history.Check(schemas.CheckOutReport{CheckOuts: []schemas.PastCheckOut{good, good}}); err != nil {
		t.Errorf("a good report: %v", err)
	}
	err := history.Check(schemas.CheckOutReport{CheckOuts: []schemas.PastCheckOut{good, bad}, Waiting: -1})
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.Invalid {
		t.Fatalf("got %v, want %s", err, fault.Invalid)
	}
	var keys []string
	for _, d := range f.Details {
		keys = append(keys, strings.TrimPrefix(d.Parameters[0].Key, "checkOuts[1]."))
		if value := *d.Parameters[0].Value; len(value) > 300 || !strings.HasPrefix(d.Message, d.Parameters[0].Key+" must ") {
			t.Errorf("%s: %q, value of %d bytes", d.Parameters[0].Key, d.Message, len(value))
		}
	}
	const want = "waiting id agoMs outcome code reason userBarcode itemBarcode userId loanId servicePointId waitMs tookMs repeats requestId"
	if got := strings.Join(keys, " "); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestCheck_AnswersInBounds(t *testing.T) {
	t.Parallel()
	var f *fault.Error
	err := history.Check(schemas.CheckOutReport{CheckOuts: make([]schemas.PastCheckOut, schemas.MaxHistoryBatch)})
	if !errors.As(err, &f) || len(f.Details) != 100 {
		t.Errorf("500 entries without anything: got %.200v, want 100 details", err)
	}
	err = history.Check(schemas.CheckOutReport{CheckOuts: make([]schemas.PastCheckOut, schemas.MaxHistoryBatch+1)})
	if !errors.As(err, &f) || len(f.Details) != 1 {
		t.Errorf("501 entries: got %.200v, want the number alone", err)
	}
}

// shelf is a store with one turn's rows.
type shelf struct {
	history.Store
	id        okapi.Tenant
	rows      int
	retention time.Duration
}

func (s *shelf) Tenants(context.Context) ([]okapi.Tenant, error) { return []okapi.Tenant{s.id}, nil }

func (s *shelf) Sweep(ctx context.Context, retention time.Duration, limit int) (int, error) {
	if id, err := okapi.TenantFrom(ctx); err != nil || id != s.id {
		return 0, errors.New("another tenant")
	}
	s.retention = retention
	n := min(s.rows, limit)
	s.rows -= n
	return n, nil
}

func (s *shelf) BlankReleases(ctx context.Context, age time.Duration, limit int) (int, error) {
	return s.Sweep(ctx, age, limit)
}

func TestSweepers_TidyEverythingThatIsOld(t *testing.T) {
	t.Parallel()
	for name, sweeper := range map[string]func(s *shelf, told func(int), log *slog.Logger) *sweep.Sweeper{
		"past check-outs": func(s *shelf, told func(int), log *slog.Logger) *sweep.Sweeper {
			return history.NewSweeper(s, s, time.Minute, 48*time.Hour, told, log)
		},
		"patrons of forced releases": func(s *shelf, told func(int), log *slog.Logger) *sweep.Sweeper {
			told(1700) // nobody counts them
			return history.NewReleaseSweeper(s, s, time.Minute, 48*time.Hour, log)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				id, err := okapi.ParseTenant("diku")
				if err != nil {
					t.Fatal(err)
				}
				store := &shelf{id: id, rows: 1700}
				told := 0
				s := sweeper(store, func(n int) { told += n }, slog.New(slog.NewTextHandler(t.Output(), nil)))
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					s.Run(ctx)
				}()
				<-time.After(time.Minute)
				synctest.Wait()
				stop()
				<-ended
				if store.rows != 0 || told != 1700 || store.retention != 48*time.Hour {
					t.Errorf("%d rows are left, %d were told, kept for %s", store.rows, told, store.retention)
				}
			})
		})
	}
}
