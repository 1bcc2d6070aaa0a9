// Command demo shows the effect of the lock. A self-check machine sends 20 check-outs at
// once for a patron with a limit of 15 loans, with the feature off and on. The check-outs
// go to four circulation instances on two storages, or to running services that
// CIRCULATION_URLS and STORAGE_URL name.
package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"checkoutlock/devpostgres"
	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas/pace"
)

const (
	limit     = 15
	checkOuts = 20
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Getenv, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run sends the check-outs to the services that getenv names, else to services of its own.
func run(ctx context.Context, getenv func(string) string, out io.Writer) (err error) {
	storage, circulations := getenv("STORAGE_URL"), strings.Fields(getenv("CIRCULATION_URLS"))
	if (storage == "") != (len(circulations) == 0) {
		return errors.New("STORAGE_URL and CIRCULATION_URLS name the running services together, or neither is set")
	}
	if storage == "" {
		var stop func() error
		if storage, circulations, stop, err = startServices(ctx, getenv, out); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	tenant := "demo_" + uuid.NewString()[:8]
	st := stack.Client{Base: storage, Tenant: tenant}
	defer func() {
		_, purgeErr := st.Must(context.WithoutCancel(ctx), http.MethodPost, "/_/tenant", map[string]any{"purge": true})
		err = errors.Join(err, purgeErr)
	}()
	lib, err := stack.NewLibrary(ctx, st, limit)
	if err != nil {
		return err
	}
	header := http.Header{}
	if password := getenv("STAFF_PASSWORD"); password != "" {
		header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("demo:"+password)))
	}
	var machines []stack.Client
	for _, base := range circulations {
		machines = append(machines, stack.Client{Base: base, Tenant: tenant, Header: header})
	}
	fmt.Fprintf(out, "A patron may have %d books; the machine sends %d check-outs at once.\n\n", limit, checkOuts)
	fmt.Fprintf(out, "%-8s %-6s %-8s %-9s %-12s %-6s %s\n", "feature", "lent", "refused", "failures", "longest", "locks", "reasons")
	for _, on := range []bool{false, true} {
		if err := runRound(ctx, out, lib, machines, on); err != nil {
			return err
		}
	}
	return nil
}

// startServices starts two storages and four circulations, on the database in DATABASE_URL
// or on a throw-away PostgreSQL. stop stops what it started.
func startServices(ctx context.Context, getenv func(string) string, out io.Writer) (storage string, circulations []string, stop func() error, err error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	database, stopDatabase := getenv("DATABASE_URL"), func() error { return nil }
	if database == "" {
		fmt.Fprintln(out, "Starting a throw-away PostgreSQL, 2 storages and 4 circulation instances ...")
		pg, err := devpostgres.Start(ctx, devpostgres.Options{BinDir: getenv("PG_BIN"), Log: log})
		if err != nil {
			return "", nil, nil, err
		}
		database, stopDatabase = pg.URL(), pg.Stop
	}
	s, err := stack.Start(ctx, stack.Options{DatabaseURL: database, Storages: 2, Circulations: 4, Log: log})
	if err != nil {
		return "", nil, nil, errors.Join(err, stopDatabase())
	}
	return s.Storages[0], s.Circulations, func() error { return errors.Join(s.Stop(), stopDatabase()) }, nil
}

// patientWaits are the waits for the lock in milliseconds. On a slow host, 20 check-outs
// with one lock take longer than the default of 2 s, and the demo shows the limit.
var patientWaits = []int{1000, 2000, 3000, 4000}

// settle is how long changed settings need to reach all instances.
const settle = 2 * time.Second

// runRound switches the feature, sends the burst for a new patron, and prints a summary.
func runRound(ctx context.Context, out io.Writer, lib *stack.Library, machines []stack.Client, on bool) error {
	name := map[bool]string{false: "off", true: "on"}[on]
	if _, err := machines[0].Must(ctx, http.MethodPut, "/circulation/check-out-lock-settings", map[string]any{"enabled": on, "retryIntervalsMs": patientWaits}); err != nil {
		return err
	}
	patron, err := lib.AddPatron(ctx, "patron-"+name)
	if err != nil {
		return err
	}
	var burst []stack.CheckOut
	for i := range checkOuts {
		barcode := fmt.Sprintf("book-%s-%02d", name, i+1)
		if _, err := lib.AddBook(ctx, barcode); err != nil {
			return err
		}
		burst = append(burst, stack.CheckOut{ItemBarcode: barcode, UserBarcode: "patron-" + name, ServicePointID: lib.ServicePointID})
	}
	if !pace.Wait(ctx, settle) {
		return ctx.Err()
	}
	sum := stack.Summarize(stack.SendBurst(ctx, machines, burst))
	lent, err := lib.CountOpenLoans(ctx, patron)
	if err != nil {
		return err
	}
	locks, err := lib.CountLocks(ctx)
	if err != nil {
		return err
	}
	refused, reasons := 0, ""
	for _, code := range sum.Reasons() {
		refused += sum.Refused[code]
		reasons += fmt.Sprintf("%s x%d ", code, sum.Refused[code])
	}
	_, err = fmt.Fprintf(out, "%-8s %-6d %-8d %-9d %-12s %-6d %s\n", name, lent, refused, sum.Failed, sum.Longest.Round(time.Millisecond), locks, reasons)
	return err
}
