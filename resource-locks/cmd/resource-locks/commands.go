package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"checkoutlock/config/command"
	"checkoutlock/resource-locks/app"
	"checkoutlock/resource-locks/internal/locket"
)

// locketCommand replaces the published server: the same option, file, outputs and exit
// status. Variables of the environment win over the file.
func locketCommand(fs *flag.FlagSet) func(context.Context, command.Process) error {
	path := fs.String("config", "", "")
	return func(ctx context.Context, p command.Process) error {
		original, err := readOriginal(*path)
		if err != nil {
			return command.NewUsage("invalid-config-file: %w", err)
		}
		p.Environ = append(p.Environ, slices.DeleteFunc(original.Environ(), func(v string) bool {
			name, _, _ := strings.Cut(v, "=")
			return isSet(p.Environ, name)
		})...)
		return serveAfter(ctx, p, func() error {
			_, err := fmt.Fprintln(p.Stdout, "locket.started")
			return err
		})
	}
}

// isSet reports whether environ has a value for a variable, or names a file with one.
func isSet(environ []string, name string) bool {
	return slices.ContainsFunc(environ, func(v string) bool {
		variable, value, _ := strings.Cut(v, "=")
		return strings.TrimSuffix(variable, "_FILE") == name && value != ""
	})
}

func readOriginal(path string) (locket.OriginalConfig, error) {
	file, err := os.Open(path) //nolint:gosec // the operator names it
	if err != nil {
		return locket.OriginalConfig{}, err
	}
	original, err := locket.ParseOriginalConfig(file)
	return original, errors.Join(err, file.Close())
}

func migrate(fs *flag.FlagSet) func(context.Context, command.Process) error {
	down, repair := fs.Bool("down", false, ""), fs.Bool("repair", false, "")
	return func(ctx context.Context, p command.Process) error {
		cfg, log, err := loadConfig(ctx, p)
		switch {
		case err != nil:
			return err
		case *down && *repair:
			return command.NewUsage("-repair goes without -down")
		case *down:
			return app.MigrateDown(ctx, cfg, log)
		case *repair:
			return app.Repair(ctx, cfg, log)
		}
		return app.Migrate(ctx, cfg, log)
	}
}

func list(fs *flag.FlagSet) func(context.Context, command.Process) error {
	namespace := fs.String("namespace", "", "")
	return func(ctx context.Context, p command.Process) error {
		cfg, _, err := loadConfig(ctx, p)
		if err != nil {
			return err
		}
		return app.List(ctx, cfg, *namespace, p.Stdout)
	}
}

func release(fs *flag.FlagSet) func(context.Context, command.Process) error {
	r := app.Release{By: command.UserName()}
	fs.StringVar(&r.Namespace, "namespace", "", "")
	fs.StringVar(&r.Name, "name", "", "")
	fs.StringVar(&r.ID, "id", "", "")
	fs.StringVar(&r.Claim, "claim", "", "")
	fs.StringVar(&r.Reason, "reason", "", "")
	return func(ctx context.Context, p command.Process) error {
		cfg, _, err := loadConfig(ctx, p)
		if err != nil {
			return err
		}
		return app.ForceRelease(ctx, cfg, r, p.Stdout)
	}
}
