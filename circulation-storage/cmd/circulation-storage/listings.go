package main

import (
	"context"
	"errors"
	"flag"
	"time"

	"checkoutlock/circulation-storage/app"
	"checkoutlock/config/command"
)

// listing returns the command that prints what list reads.
func listing(fs *flag.FlagSet, list func(context.Context, app.Listing, app.Config) error) func(context.Context, command.Process) error {
	tenant, asJSON := fs.String("tenant", "", ""), fs.Bool("json", false, "")
	return func(ctx context.Context, p command.Process) error {
		cfg, _, err := load(ctx, p)
		if err != nil {
			return err
		}
		return list(ctx, app.Listing{Tenant: *tenant, JSON: *asJSON, Out: p.Stdout}, cfg)
	}
}

func locks(fs *flag.FlagSet) func(context.Context, command.Process) error {
	patron, release, reason := fs.String("user", "", ""), fs.String("release", "", ""), fs.String("reason", "", "")
	return listing(fs, func(ctx context.Context, l app.Listing, cfg app.Config) error {
		switch {
		case *release != "" && (l.JSON || *patron != ""): // it releases one lock, and prints a sentence
			return command.NewUsage("-release goes without -json and -user")
		case *release != "":
			return app.ReleaseLock(ctx, cfg, l.Tenant, *release, *reason, command.UserName(), l.Out)
		case *reason != "":
			return command.NewUsage("-reason goes with -release ID")
		}
		return l.ListLocks(ctx, cfg, *patron)
	})
}

func tenants(fs *flag.FlagSet) func(context.Context, command.Process) error {
	return listing(fs, func(ctx context.Context, l app.Listing, cfg app.Config) error { return l.ListTenants(ctx, cfg) })
}

func pastCheckOuts(fs *flag.FlagSet) func(context.Context, command.Process) error {
	patron, item := fs.String("user", "", ""), fs.String("item", "", "")
	outcome, since := fs.String("outcome", "", ""), fs.Duration("since", 0, "")
	return listing(fs, func(ctx context.Context, l app.Listing, cfg app.Config) error {
		return l.ListHistory(ctx, cfg, *patron, *item, *outcome, *since)
	})
}

func settings(fs *flag.FlagSet) func(context.Context, command.Process) error {
	return listing(fs, func(ctx context.Context, l app.Listing, cfg app.Config) error { return l.PrintSettings(ctx, cfg) })
}

func changes(fs *flag.FlagSet) func(context.Context, command.Process) error {
	return listing(fs, func(ctx context.Context, l app.Listing, cfg app.Config) error { return l.ListChanges(ctx, cfg) })
}

func diagnose(fs *flag.FlagSet) func(context.Context, command.Process) error {
	patience := fs.Duration("patience", 5*time.Second, "") // circulation's default of MACHINE_PATIENCE
	run := listing(fs, func(ctx context.Context, l app.Listing, cfg app.Config) error { return l.Diagnose(ctx, cfg, *patience) })
	return func(ctx context.Context, p command.Process) error {
		err := run(ctx, p)
		if err == nil || errors.As(err, new(*command.StatusError)) {
			return err
		}
		return &command.StatusError{Err: err, Status: 2} // 1 stands for warnings
	}
}
