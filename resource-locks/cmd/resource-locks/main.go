// Command resource-locks serves four lock protocols on one PostgreSQL. Its settings are
// environment variables; see docs/resource-locks.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"

	"checkoutlock/config"
	"checkoutlock/config/command"
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
  resource-locks descriptor                  print FOLIO's module descriptor
  resource-locks -healthcheck                exit with 0 if the service on this machine is ready

DATABASE_URL is required. A front is off until its address is set.
`

func main() { command.Main("resource-locks", usage+config.ListSettings(&app.Config{}), run) }

func run(ctx context.Context, p command.Process) error {
	name, args := p.Split()
	switch name {
	case "-h", "-help", "--help", "help":
		return flag.ErrHelp
	case "-healthcheck", "--healthcheck":
		return web.Healthcheck(ctx, app.DefaultConfig().HTTP, p.Environ)
	case "version", "-version", "--version":
		return command.PrintVersion(p.Stdout, "resource-locks")
	case "descriptor":
		return command.PrintJSON(p.Stdout, app.Descriptor)
	case "locket":
		return serveLocket(ctx, p, args)
	}
	cfg, log, err := loadConfig(ctx, p)
	if err != nil {
		return err
	}
	switch name {
	case "serve":
		return serve(ctx, cfg, args, log)
	case "migrate":
		return migrate(ctx, cfg, args, log)
	case "list":
		return list(ctx, cfg, args, p.Stdout)
	case "release":
		return release(ctx, cfg, args, p.Stdout)
	}
	return fmt.Errorf("there is no command %q; resource-locks help lists them", name)
}

func loadConfig(ctx context.Context, p command.Process) (app.Config, *slog.Logger, error) {
	cfg := app.DefaultConfig()
	if err := config.Load(&cfg, p.Environ); err != nil {
		return cfg, nil, err
	}
	log := cfg.Log.New(p.Stderr, "resource-locks")
	config.WarnOfMisspelt(ctx, log, &cfg, p.Environ)
	return cfg, log, nil
}

func serve(ctx context.Context, cfg app.Config, args []string, log *slog.Logger) error {
	if len(args) > 0 {
		return fmt.Errorf("serve takes no arguments, but got %q", args)
	}
	return command.Serve(ctx, log, func(ctx context.Context) error {
		a, err := app.New(ctx, cfg, log)
		if err != nil {
			return err
		}
		return a.Run(ctx)
	})
}
