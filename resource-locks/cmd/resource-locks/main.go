// Command resource-locks serves four lock protocols on one PostgreSQL. Its settings are
// environment variables; see docs/resource-locks.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"checkoutlock/config"
	"checkoutlock/resource-locks/app"
	"checkoutlock/web"
)

const usage = `resource-locks serves four lock protocols on one PostgreSQL.

  resource-locks [serve]                     run the service; it migrates its schema first
  resource-locks migrate [-down | -repair]   create or upgrade the schema; undo all migrations; or complete
                                             a migration that left the schema dirty, then upgrade
  resource-locks list [-namespace NAME]      list the live locks and the claims
  resource-locks release -namespace NAME -name NAME -id ID -reason TEXT
                                             release a lock, as list shows it
  resource-locks release -namespace NAME -claim ID -reason TEXT
                                             release a claim
  resource-locks locket -config FILE         serve Locket with a file of the published server
  resource-locks version                     print the version
  resource-locks -healthcheck                exit with 0 if the service on this machine is ready

Settings are environment variables; docs/resource-locks.md describes them. DATABASE_URL is required. A front
is off until its address is set: LOCKET_ADDR, LOCKTOPUS_ADDR, SUNBIRD_ADDR, MUTEX_ADDR.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(os.Stdout, usage)
	case errors.Is(err, errOriginalConfig):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2) // as the published server
	case err != nil:
		fmt.Fprintln(os.Stderr, "resource-locks:", err)
		os.Exit(1)
	}
}

// run is main without the process, so that tests can call it.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	command := "serve"
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	switch command {
	case "-h", "-help", "--help", "help":
		return flag.ErrHelp
	case "-healthcheck", "--healthcheck":
		return web.Healthcheck(ctx, app.DefaultConfig().HTTP, environ)
	case "version":
		return printVersion(stdout)
	case "locket":
		return serveLocket(ctx, args, environ, stdout, stderr)
	}
	cfg, log, err := loadConfig(ctx, environ, stderr)
	if err != nil {
		return err
	}
	switch command {
	case "serve":
		return serve(ctx, cfg, args, log)
	case "migrate":
		return migrate(ctx, cfg, args, log)
	case "list":
		return list(ctx, cfg, args, stdout)
	case "release":
		return release(ctx, cfg, args, stdout)
	}
	return fmt.Errorf("there is no command %q; resource-locks help lists them", command)
}

func loadConfig(ctx context.Context, environ []string, stderr io.Writer) (app.Config, *slog.Logger, error) {
	cfg := app.DefaultConfig()
	if err := config.Load(&cfg, environ); err != nil {
		return cfg, nil, err
	}
	log := cfg.Log.New(stderr, "resource-locks")
	config.WarnOfMisspelt(ctx, log, &cfg, environ)
	return cfg, log, nil
}

func printVersion(out io.Writer) error {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version + " " + info.GoVersion
	}
	_, err := fmt.Fprintln(out, "resource-locks", version)
	return err
}

func serve(ctx context.Context, cfg app.Config, args []string, log *slog.Logger) error {
	if len(args) > 0 {
		return fmt.Errorf("serve takes no arguments, but got %q", args)
	}
	a, err := app.New(ctx, cfg, log)
	if err != nil {
		return err
	}
	return a.Run(ctx)
}
