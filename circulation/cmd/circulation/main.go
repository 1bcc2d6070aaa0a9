// Command circulation lends a library's items and takes them back. Its settings
// are environment variables; see docs/settings.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // the staff pages show times by TZ, also in an image without zone files

	"checkoutlock/circulation/app"
	"checkoutlock/config"
	"checkoutlock/web"
)

const usage = `circulation lends a library's items and takes them back.

  circulation [serve]        run the service
  circulation -healthcheck   exit with 0 if the service on this machine is ready

Settings are environment variables: STORAGE_URL, STORAGE_READY_TENANT, CHECKOUT_LOCK_FEATURE_ENABLED, LOCK_TTL_MS, RETRY_INTERVAL_MS,
INSTANCE_NAME, STAFF_AUTH, STAFF_PASSWORD, MACHINE_PATIENCE, TZ, PORT, HTTP_ADDR, REQUEST_TIMEOUT, SHUTDOWN_TIMEOUT, DRAIN_DELAY, LOG_LEVEL.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Environ(), os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(os.Stdout, usage)
	case err != nil:
		fmt.Fprintln(os.Stderr, "circulation:", err)
		os.Exit(1)
	}
}

// run is main without the process, so that tests can call it.
func run(ctx context.Context, args, environ []string, stderr io.Writer) error {
	command := "serve"
	if len(args) > 0 {
		command = args[0]
	}
	if len(args) > 1 {
		return fmt.Errorf("%s takes no arguments, but got %q", command, args[1:])
	}
	switch command {
	case "-h", "-help", "--help", "help":
		return flag.ErrHelp
	case "-healthcheck", "--healthcheck":
		return web.Healthcheck(ctx, app.DefaultConfig().HTTP, environ)
	case "serve":
		return serve(ctx, environ, stderr)
	}
	return fmt.Errorf("there is no command %q; circulation help lists them", command)
}

func serve(ctx context.Context, environ []string, stderr io.Writer) error {
	cfg := app.DefaultConfig()
	if err := config.Load(&cfg, environ); err != nil {
		return err
	}
	log := cfg.Log.New(stderr, "circulation")
	config.WarnOfMisspelt(ctx, log, &cfg, environ)
	a, err := app.New(ctx, cfg, log)
	if err != nil {
		return err
	}
	return a.Run(ctx)
}
