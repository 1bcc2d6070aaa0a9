package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"checkoutlock/config/command"
	"checkoutlock/resource-locks/app"
	"checkoutlock/resource-locks/internal/locket"
)

// serveLocket replaces the published server: the same option, file, outputs and exit
// status. Variables of the environment win over the file.
func serveLocket(ctx context.Context, p command.Process, args []string) error {
	fs := command.NewFlags("locket")
	path := fs.String("config", "", "")
	if err := command.ParseFlags(fs, args); err != nil {
		return err
	}
	original, err := readOriginal(*path)
	if err != nil {
		return &command.StatusError{Err: fmt.Errorf("invalid-config-file: %w", err), Status: 2}
	}
	p.Environ = append(original.Environ(), p.Environ...)
	cfg, log, err := loadConfig(ctx, p)
	if err != nil {
		return err
	}
	return command.Serve(ctx, log, func(ctx context.Context) error {
		a, err := app.New(ctx, cfg, log)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(p.Stdout, "locket.started"); err != nil {
			return errors.Join(err, a.Close(ctx))
		}
		return a.Run(ctx)
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

func migrate(ctx context.Context, cfg app.Config, args []string, log *slog.Logger) error {
	fs := command.NewFlags("migrate")
	down, repair := fs.Bool("down", false, ""), fs.Bool("repair", false, "")
	if err := command.ParseFlags(fs, args); err != nil {
		return err
	}
	switch {
	case *down && *repair:
		return errors.New("-repair goes without -down")
	case *down:
		return app.MigrateDown(ctx, cfg, log)
	case *repair:
		return app.Repair(ctx, cfg, log)
	}
	return app.Migrate(ctx, cfg, log)
}

func list(ctx context.Context, cfg app.Config, args []string, stdout io.Writer) error {
	fs := command.NewFlags("list")
	namespace := fs.String("namespace", "", "")
	if err := command.ParseFlags(fs, args); err != nil {
		return err
	}
	return app.List(ctx, cfg, *namespace, stdout)
}

func release(ctx context.Context, cfg app.Config, args []string, stdout io.Writer) error {
	fs := command.NewFlags("release")
	r := app.Release{By: command.UserName()}
	fs.StringVar(&r.Namespace, "namespace", "", "")
	fs.StringVar(&r.Name, "name", "", "")
	fs.StringVar(&r.ID, "id", "", "")
	fs.StringVar(&r.Claim, "claim", "", "")
	fs.StringVar(&r.Reason, "reason", "", "")
	if err := command.ParseFlags(fs, args); err != nil {
		return err
	}
	return app.ForceRelease(ctx, cfg, r, stdout)
}
