package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// An operation is done at a desk; n counts from 0.
type operation func(ctx context.Context, d *desk, n int) error

const (
	// Each list is read so often before it is measured, and as many items are lent. PostgreSQL plans the
	// first runs of a statement on each connection for their values, and those plans take longer here.
	growthWarmUps = 100
	growthTurns   = 20 // of each operation in each repetition
	readerTurns   = 50 // check-outs of a patron, so that the number of their loans stays about the same
)

// measureGrowth measures lists and check-outs while the library's loans grow.
func measureGrowth(ctx context.Context, b *bench) (err error) {
	desks, err := startDesks(ctx, b, b.builds)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopAll(desks...)) }()
	if err := turnAll(ctx, true, desks); err != nil {
		return err
	}
	have := 0
	for _, loans := range []int{1_000, 100_000, 1_000_000} {
		if loans > b.loans {
			break
		}
		for _, d := range desks {
			if err := d.shelf.addLoans(ctx, have, loans); err != nil {
				return err
			}
		}
		have = loans
		if err := measureLoans(ctx, b, desks, loans); err != nil {
			return err
		}
	}
	return measureReaders(ctx, b, desks)
}

// measureLoans measures lists and check-outs of libraries that have so many loans.
func measureLoans(ctx context.Context, b *bench, desks []*desk, loans int) error {
	turns := growthTurns * b.repetitions
	first, err := addCopiesAt(ctx, desks, growthWarmUps+turns)
	if err != nil {
		return err
	}
	open := url.QueryEscape("status.name==Open")
	rows := [][]string{{strconv.Itoa(loans) + " loans", "build", "p50", "of base"}}
	for _, o := range []struct {
		name string
		do   operation
	}{
		{"all loans, limit 10", readLoans("limit=10")},
		{"the same, sortby loanDate", readLoans("limit=10&query=" + url.QueryEscape("cql.allRecords=1 sortby loanDate"))},
		{"status.name==Open, limit 10", readLoans("limit=10&query=" + open)},
		{"/circulation/loans, status.name==Open", func(ctx context.Context, d *desk, _ int) error {
			return d.read(ctx, d.circulation.url+"/circulation/loans?limit=10&query="+open)
		}},
		{"a check-out", func(ctx context.Context, d *desk, n int) error { return d.lend(ctx, first+n, first+n/10) }},
	} {
		took, err := alternate(ctx, desks, growthWarmUps, turns, o.do)
		if err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
		for i, d := range desks {
			rows = append(rows, append([]string{o.name, d.build.name}, formatTimes(took[i], took[len(desks)-1])...))
		}
	}
	b.report.table(rows)
	return nil
}

// addCopiesAt is addCopies at each desk. The numbers of the barcodes are the same at all.
func addCopiesAt(ctx context.Context, desks []*desk, n int) (first int, err error) {
	for _, d := range desks {
		if first, err = d.shelf.addCopies(ctx, n); err != nil {
			return 0, err
		}
	}
	return first, nil
}

// readLoans reads a list of loans of the desk's storage.
func readLoans(query string) operation {
	return func(ctx context.Context, d *desk, _ int) error {
		return d.read(ctx, d.storage.url+"/loan-storage/loans?"+query)
	}
}

func (d *desk) read(ctx context.Context, listURL string) error {
	client := d.machine
	client.Base = ""
	_, err := client.Must(ctx, http.MethodGet, listURL, nil)
	return err
}

// alternate does an operation at each desk in turn, and returns how long each took at each desk. Another desk
// is the first each time. The warm-ups come before and do not count.
func alternate(ctx context.Context, desks []*desk, warmUps, turns int, do operation) ([][]time.Duration, error) {
	took := make([][]time.Duration, len(desks))
	for n := range warmUps + turns {
		for i := range desks {
			at := (i + n) % len(desks)
			began := time.Now()
			if err := do(ctx, desks[at], n); err != nil {
				return nil, fmt.Errorf("%s: %w", desks[at].build.name, err)
			}
			if n >= warmUps {
				took[at] = append(took[at], time.Since(began))
			}
		}
	}
	return took, nil
}

// formatTimes writes the median of times, and that of their ratios to the base's.
func formatTimes(all, base []time.Duration) []string {
	read := func(d time.Duration) float64 { return float64(d) }
	return []string{formatMillis(time.Duration(median(all, read))), formatRatios(all, base, read)}
}

// measureReaders measures check-outs of patrons who have many open loans.
func measureReaders(ctx context.Context, b *bench, desks []*desk) error {
	rows := [][]string{{"open loans of the patron", "build", "a check-out, p50", "of base", "their list", "of base"}}
	for _, loans := range []int{1, 100, 1000} {
		first, err := addCopiesAt(ctx, desks, loans+1+readerTurns)
		if err != nil {
			return err
		}
		barcode, users := "reader "+uuid.NewString(), map[*desk]string{}
		for _, d := range desks {
			if users[d], err = d.shelf.AddPatron(ctx, barcode); err != nil {
				return err
			}
			if err := d.shelf.lendToPatron(ctx, users[d], first, loans); err != nil {
				return err
			}
		}
		checkOuts, err := alternate(ctx, desks, 1, readerTurns, func(ctx context.Context, d *desk, n int) error {
			return d.lendTo(ctx, "i"+strconv.Itoa(first+loans+n), barcode)
		})
		if err != nil {
			return err
		}
		lists, err := alternate(ctx, desks, growthWarmUps, growthTurns*b.repetitions, func(ctx context.Context, d *desk, n int) error {
			open := fmt.Sprintf("userId==%s and status.name==Open", users[d])
			return readLoans("limit=1000&query="+url.QueryEscape(open))(ctx, d, n)
		})
		if err != nil {
			return err
		}
		for i, d := range desks {
			base := len(desks) - 1
			row := append([]string{strconv.Itoa(loans), d.build.name}, formatTimes(checkOuts[i], checkOuts[base])...)
			rows = append(rows, append(row, formatTimes(lists[i], lists[base])...))
		}
	}
	b.report.table(rows)
	return nil
}
