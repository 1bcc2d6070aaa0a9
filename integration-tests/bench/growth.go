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

// measureGrowth measures lists and check-outs while the library's loans grow.
func measureGrowth(ctx context.Context, b *bench) (err error) {
	d, err := startDesk(ctx, b, b.builds[0], noLimit, detours{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	if err := d.turn(ctx, true); err != nil {
		return err
	}
	open := url.QueryEscape("status.name==Open")
	lists := []struct{ name, url string }{
		{"all loans, limit 10", d.storage.url + "/loan-storage/loans?limit=10"},
		{"the same, sortby loanDate", d.storage.url + "/loan-storage/loans?limit=10&query=" + url.QueryEscape("cql.allRecords=1 sortby loanDate")},
		{"status.name==Open, limit 10", d.storage.url + "/loan-storage/loans?limit=10&query=" + open},
		{"/circulation/loans, status.name==Open", d.circulation.url + "/circulation/loans?limit=10&query=" + open},
	}
	rows := [][]string{{"p50"}}
	for _, l := range lists {
		rows = append(rows, []string{l.name})
	}
	rows = append(rows, []string{"a check-out"})
	have := 0
	for _, loans := range []int{1_000, 100_000, 1_000_000} {
		if loans > b.loans {
			break
		}
		if err := d.shelf.addLoans(ctx, have, loans); err != nil {
			return err
		}
		have = loans
		rows[0] = append(rows[0], strconv.Itoa(loans)+" loans")
		for i, l := range lists {
			p50, err := d.measureList(ctx, l.url)
			if err != nil {
				return err
			}
			rows[i+1] = append(rows[i+1], formatMillis(p50))
		}
		f, err := d.drive(ctx, 1)
		if err != nil {
			return err
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], formatMillis(f.percentile(0.5)))
	}
	b.report.table(rows)
	return d.measureReaders(ctx, b)
}

// measureList reads a list five times after one that warms the caches.
func (d *desk) measureList(ctx context.Context, listURL string) (time.Duration, error) {
	client := d.machine
	client.Base = ""
	latencies := make([]time.Duration, 0, 6)
	for range cap(latencies) {
		began := time.Now()
		if _, err := client.Must(ctx, http.MethodGet, listURL, nil); err != nil {
			return 0, err
		}
		latencies = append(latencies, time.Since(began))
	}
	return summarize(latencies[1:], time.Second).percentile(0.5), nil
}

// measureReaders measures check-outs of patrons who have many open loans.
func (d *desk) measureReaders(ctx context.Context, b *bench) error {
	rows := [][]string{{"open loans of the patron", "a check-out, p50", "their list"}}
	for _, loans := range []int{1, 100, 1000} {
		first, err := d.shelf.addCopies(ctx, loans+50)
		if err != nil {
			return err
		}
		barcode := "reader " + uuid.NewString()
		userID, err := d.shelf.AddPatron(ctx, barcode)
		if err != nil {
			return err
		}
		if err := d.shelf.lendToPatron(ctx, userID, first, loans); err != nil {
			return err
		}
		latencies := make([]time.Duration, 0, 50)
		for i := range cap(latencies) {
			began := time.Now()
			if err := d.lendTo(ctx, "i"+strconv.Itoa(first+loans+i), barcode); err != nil {
				return err
			}
			latencies = append(latencies, time.Since(began))
		}
		list, err := d.measureList(ctx, d.storage.url+"/loan-storage/loans?limit=1000&query="+
			url.QueryEscape(fmt.Sprintf("userId==%s and status.name==Open", userID)))
		if err != nil {
			return err
		}
		rows = append(rows, []string{strconv.Itoa(loans), formatMillis(summarize(latencies, time.Second).percentile(0.5)), formatMillis(list)})
	}
	b.report.table(rows)
	return nil
}
