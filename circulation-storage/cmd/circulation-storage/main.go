// Command circulation-storage keeps a library's records and the patrons' check-out
// locks in PostgreSQL. Its settings are environment variables; see docs/settings.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"

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
  circulation-storage locks -tenant NAME [-user ID]
                                                list the locks, oldest first
  circulation-storage locks -tenant NAME -release ID -reason TEXT
                                                release a lock; the check-out that held it will be refused
  circulation-storage descriptor [-without INTERFACE,...]
                                                print the module descriptor, without what other modules provide
  circulation-storage version                   print the version
  circulation-storage -healthcheck              exit with 0 if the service on this machine is ready

DATABASE_URL is required.
`

func main() { command.Main("circulation-storage", usage+config.ListSettings(&app.Config{}), run) }

func run(ctx context.Context, p command.Process) error {
	name, args := p.Split()
	switch name {
	case "-h", "-help", "--help", "help":
		return flag.ErrHelp
	case "-healthcheck", "--healthcheck":
		return web.Healthcheck(ctx, app.DefaultConfig().HTTP, p.Environ)
	case "version", "-version", "--version":
		return command.PrintVersion(p.Stdout, "circulation-storage")
	case "descriptor":
		return describe(args, p.Stdout)
	}
	cfg := app.DefaultConfig()
	if err := config.Load(&cfg, p.Environ); err != nil {
		return err
	}
	config.SetHeapGrowth(p.Environ)
	log := cfg.Log.New(p.Stderr, "circulation-storage")
	config.WarnOfMisspelt(ctx, log, &cfg, p.Environ)
	switch name {
	case "serve":
		return serve(ctx, cfg, args, log)
	case "migrate":
		return migrate(ctx, cfg, args, log)
	case "locks":
		return manageLocks(ctx, cfg, args, p.Stdout)
	}
	return fmt.Errorf("there is no command %q; circulation-storage help lists them", name)
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

func describe(args []string, stdout io.Writer) error {
	fs := command.NewFlags("descriptor")
	var without []string
	fs.Func("without", "", func(list string) error {
		without = append(without, strings.Split(list, ",")...)
		return nil
	})
	if err := command.ParseFlags(fs, args); err != nil {
		return err
	}
	return command.PrintJSON(stdout, func() (any, error) { return app.Descriptor(without...) })
}

func migrate(ctx context.Context, cfg app.Config, args []string, log *slog.Logger) error {
	fs := command.NewFlags("migrate")
	var named []string
	fs.Func("tenant", "", func(name string) error {
		named = append(named, name)
		return nil
	})
	sample, down, repair := fs.Bool("sample", false, ""), fs.Bool("down", false, ""), fs.Bool("repair", false, "")
	if err := command.ParseFlags(fs, args); err != nil {
		return err
	}
	if *repair && (*down || *sample) {
		return errors.New("-repair goes with neither -down nor -sample")
	}
	if *down {
		if len(named) == 0 {
			return errors.New("migrate -down loses all records, so it needs -tenant NAME")
		}
		return app.MigrateDown(ctx, cfg, named, log)
	}
	if len(named) > 0 {
		cfg.Tenants = named
	}
	if len(cfg.Tenants) == 0 {
		return errors.New("no tenant: name some with -tenant or TENANTS")
	}
	if *repair {
		return app.Repair(ctx, cfg, log)
	}
	return app.Migrate(ctx, cfg, *sample, log)
}

func manageLocks(ctx context.Context, cfg app.Config, args []string, stdout io.Writer) error {
	fs := command.NewFlags("locks")
	tenant, patron := fs.String("tenant", "", ""), fs.String("user", "", "")
	release, reason := fs.String("release", "", ""), fs.String("reason", "", "")
	if err := command.ParseFlags(fs, args); err != nil {
		return err
	}
	if *release != "" {
		return app.ReleaseLock(ctx, cfg, *tenant, *release, *reason, command.UserName(), stdout)
	}
	if *reason != "" {
		return errors.New("-reason goes with -release ID")
	}
	return app.ListLocks(ctx, cfg, *tenant, *patron, stdout)
}
