// Command resource-locks serves four lock protocols on one PostgreSQL. Its settings are
// environment variables; see docs/resource-locks.md.
package main

import (
	"context"
	"errors"
	"log/slog"
	_ "time/tzdata" // the page of locks shows times by TZ and the browser's zone, also in an image without zone files

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
  resource-locks completion                  print the script that completes commands in bash
  resource-locks descriptor                  print FOLIO's module descriptor
  resource-locks -healthcheck                exit with 0 if the service on this host is ready

DATABASE_URL is required. A front is off until its address is set.
`

const name = "resource-locks"

func main() { command.Main(name, usage+config.ListSettings(&app.Config{}), program.Run) }

var program = command.Program{Name: name, Commands: map[string]command.Command{
	"serve": command.Plain(serve), "migrate": migrate, "list": list, "release": release, "locket": locketCommand,
	"descriptor": command.Plain(func(_ context.Context, p command.Process) error {
		return command.PrintJSON(p.Stdout, func() (any, error) { return app.Module().Descriptor() })
	}),
	"healthcheck": command.Plain(func(ctx context.Context, p command.Process) error {
		return web.Healthcheck(ctx, app.DefaultConfig().HTTP, p.Environ)
	}),
}}

func loadConfig(ctx context.Context, p command.Process) (app.Config, *slog.Logger, error) {
	cfg := app.DefaultConfig()
	log, err := p.LoadSettings(ctx, name, &cfg, &cfg.Log)
	return cfg, log, err
}

func serve(ctx context.Context, p command.Process) error {
	return serveAfter(ctx, p, func() error { return nil })
}

// serveAfter runs the service. It calls started once its fronts listen; an error stops it.
func serveAfter(ctx context.Context, p command.Process, started func() error) error {
	cfg, log, err := loadConfig(ctx, p)
	if err != nil {
		return err
	}
	return command.Serve(ctx, log, func(ctx context.Context) (*web.Service, error) {
		a, err := app.New(ctx, cfg, log)
		if err != nil {
			return nil, err
		}
		if err := started(); err != nil {
			return nil, errors.Join(err, a.Close(ctx))
		}
		return a, nil
	})
}
