// Command circulation-storage keeps a library's records and the patrons' check-out
// locks in PostgreSQL. Its settings are environment variables; see docs/settings.md.
package main

import (
	"context"
	"flag"
	"log/slog"
	"strings"
	_ "time/tzdata" // the records of terminals name time zones

	"checkoutlock/circulation-storage/app"
	"checkoutlock/config"
	"checkoutlock/config/command"
	"checkoutlock/web"
)

const usage = `circulation-storage keeps a library's records and the patrons' check-out locks.

  circulation-storage [serve]                   run the service
  circulation-storage migrate [-sample] [-tenant NAME]...
                                                install or upgrade tenants, those of TENANTS if none is named
  circulation-storage migrate -repair -tenant NAME
                                                complete a migration that left the schema dirty, then upgrade
  circulation-storage migrate -down -tenant NAME
                                                undo all migrations of a tenant; its records are lost
  circulation-storage locks -tenant NAME [-user ID|BARCODE] [-json]
                                                list the locks, oldest first
  circulation-storage locks -tenant NAME -release ID -reason TEXT
                                                release a lock, which is safe; its check-out takes the lock
                                                again, or is refused
  circulation-storage history -tenant NAME [-user BARCODE] [-item BARCODE] [-outcome OUTCOME] [-since 1h] [-json]
                                                list ended check-outs, newest first
  circulation-storage settings -tenant NAME     print the tenant's own settings of the lock, as JSON
  circulation-storage changes -tenant NAME [-json]
                                                list who changed those or released a lock, newest first
  circulation-storage tenants [-json]           list the tenants, and what is wrong with their schemas
  circulation-storage doctor [-tenant NAME] [-patience 5s] [-json]
                                                look for what is wrong, and say what to do; -patience is how
                                                long machines wait for an answer
  circulation-storage descriptor [-without INTERFACE,...]
                                                print the module descriptor, without what other modules provide
  circulation-storage version                   print the version
  circulation-storage completion                print the script that completes commands in bash
  circulation-storage -healthcheck              exit with 0 if the service on this host is ready

The status is 2 for a wrong command line, 3 if the database cannot be reached, else 1 for a failure.
That of doctor is 1 after warnings, 2 if something is broken. DATABASE_URL is required.
`

const name = "circulation-storage"

func main() { command.Main(name, usage+config.ListSettings(&app.Config{}), program.Run) }

var program = command.Program{Name: name, Commands: map[string]command.Command{
	"serve": command.Plain(serve), "migrate": migrate, "descriptor": describe,
	"locks": locks, "tenants": tenants, "history": pastCheckOuts, "settings": settings, "changes": changes, "doctor": diagnose,
	"healthcheck": command.Plain(func(ctx context.Context, p command.Process) error {
		return web.Healthcheck(ctx, app.DefaultConfig().HTTP, p.Environ)
	}),
}}

// load reads the settings, and makes the log.
func load(ctx context.Context, p command.Process) (app.Config, *slog.Logger, error) {
	cfg := app.DefaultConfig()
	log, err := p.LoadSettings(ctx, name, &cfg, &cfg.Log)
	return cfg, log, err
}

func serve(ctx context.Context, p command.Process) error {
	cfg, log, err := load(ctx, p)
	if err != nil {
		return err
	}
	config.SetHeapGrowth(p.Environ)
	return command.Serve(ctx, log, func(ctx context.Context) (*web.Service, error) { return app.New(ctx, cfg, log) })
}

func describe(fs *flag.FlagSet) func(context.Context, command.Process) error {
	var without []string
	fs.Func("without", "", func(list string) error {
		without = append(without, strings.Split(list, ",")...)
		return nil
	})
	return func(_ context.Context, p command.Process) error {
		return command.PrintJSON(p.Stdout, func() (any, error) { return app.Module().Descriptor(without...) })
	}
}

func migrate(fs *flag.FlagSet) func(context.Context, command.Process) error {
	var named []string
	fs.Func("tenant", "", func(name string) error {
		named = append(named, name)
		return nil
	})
	sample, down, repair := fs.Bool("sample", false, ""), fs.Bool("down", false, ""), fs.Bool("repair", false, "")
	return func(ctx context.Context, p command.Process) error {
		cfg, log, err := load(ctx, p)
		if err != nil {
			return err
		}
		if len(named) > 0 {
			cfg.Tenants = named
		}
		switch {
		case *repair && (*down || *sample), *down && *sample:
			return command.NewUsage("migrate takes only one of -repair, -down and -sample")
		case *down && len(named) == 0:
			return command.NewUsage("migrate -down loses all records, so it needs -tenant NAME")
		case len(cfg.Tenants) == 0:
			return command.NewUsage("no tenant: name some with -tenant or TENANTS")
		case *down:
			return app.MigrateDown(ctx, cfg, log)
		case *repair:
			return app.Repair(ctx, cfg, log)
		}
		return app.Migrate(ctx, cfg, *sample, log)
	}
}
