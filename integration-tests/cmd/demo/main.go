// Command demo shows the effect of the lock. A self-check machine sends 20 check-outs at
// once for a patron with a limit of 15 loans, with the feature off and on. The check-outs
// go to four circulation instances on two storages.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/google/uuid"

	"checkoutlock/devpostgres"
	"checkoutlock/integration-tests/stack"
)

const (
	limit     = 15
	checkOuts = 20
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	database := os.Getenv("DATABASE_URL")
	if database == "" {
		fmt.Fprintln(out, "Starting a throw-away PostgreSQL, 2 storages and 4 circulation instances ...")
		pg, startErr := devpostgres.Start(ctx, devpostgres.Options{BinDir: os.Getenv("PG_BIN"), Log: log})
		if startErr != nil {
			return startErr
		}
		defer func() { err = errors.Join(err, pg.Stop()) }()
		database = pg.URL()
	}
	// On a slow machine, 20 check-outs with one lock take longer than the default wait of
	// 2 s. The demo shows the limit, so it waits longer.
	s, err := stack.Start(ctx, stack.Options{
		DatabaseURL: database, Storages: 2, Circulations: 4, Log: log,
		CirculationEnv: []string{"RETRY_INTERVAL_MS=1000|2000|3000|4000"},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()

	tenant := "demo_" + uuid.NewString()[:8]
	st := stack.Client{Base: s.Storages[0], Tenant: tenant}
	lib, err := stack.NewLibrary(ctx, st, limit)
	if err != nil {
		return err
	}
	defer func() {
		_, purgeErr := st.Must(context.WithoutCancel(ctx), http.MethodPost, "/_/tenant", map[string]any{"purge": true})
		err = errors.Join(err, purgeErr)
	}()
	var machines []stack.Client
	for _, base := range s.Circulations {
		machines = append(machines, stack.Client{Base: base, Tenant: tenant})
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

// settle is how long changed settings need to reach all instances.
const settle = 2 * time.Second

// runRound switches the feature, sends the burst for a new patron, and prints a summary.
func runRound(ctx context.Context, out io.Writer, lib *stack.Library, machines []stack.Client, on bool) error {
	name := map[bool]string{false: "off", true: "on"}[on]
	if _, err := machines[0].Must(ctx, http.MethodPut, "/circulation/check-out-lock-settings", map[string]any{"enabled": on}); err != nil {
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
	select {
	case <-time.After(settle):
	case <-ctx.Done():
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
