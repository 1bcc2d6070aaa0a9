package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"

	"checkoutlock/resource-locks/app"
	"checkoutlock/resource-locks/internal/locket"
)

// errOriginalConfig is a file of the published server that cannot be read.
var errOriginalConfig = errors.New("invalid-config-file")

// serveLocket replaces the published server: the same option, file, outputs and exit
// status. Variables of the environment win over the file.
func serveLocket(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	fs := newFlags("locket")
	path := fs.String("config", "", "")
	if err := parseFlags(fs, args); err != nil {
		return err
	}
	original, err := readOriginal(*path)
	if err != nil {
		return fmt.Errorf("%w: %w", errOriginalConfig, err)
	}
	cfg, log, err := loadConfig(ctx, append(original.Environ(), environ...), stderr)
	if err != nil {
		return err
	}
	a, err := app.New(ctx, cfg, log)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(stdout, "locket.started"); err != nil {
		return errors.Join(err, a.Close(ctx))
	}
	return a.Run(ctx)
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
	fs := newFlags("migrate")
	down, repair := fs.Bool("down", false, ""), fs.Bool("repair", false, "")
	if err := parseFlags(fs, args); err != nil {
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
	fs := newFlags("list")
	namespace := fs.String("namespace", "", "")
	if err := parseFlags(fs, args); err != nil {
		return err
	}
	return app.List(ctx, cfg, *namespace, stdout)
}

func release(ctx context.Context, cfg app.Config, args []string, stdout io.Writer) error {
	fs := newFlags("release")
	r := app.Release{By: userName()}
	fs.StringVar(&r.Namespace, "namespace", "", "")
	fs.StringVar(&r.Name, "name", "", "")
	fs.StringVar(&r.ID, "id", "", "")
	fs.StringVar(&r.Claim, "claim", "", "")
	fs.StringVar(&r.Reason, "reason", "", "")
	if err := parseFlags(fs, args); err != nil {
		return err
	}
	return app.ForceRelease(ctx, cfg, r, stdout)
}

// newFlags returns a flag set that prints nothing.
func newFlags(command string) *flag.FlagSet {
	fs := flag.NewFlagSet(command, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	return fs
}

func parseFlags(fs *flag.FlagSet, args []string) error {
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 { // without quotes, only the first word of a reason would be stored
		return fmt.Errorf("%s takes flags alone, but got %q as well; quote a value of several words", fs.Name(), fs.Args())
	}
	return nil
}

// userName returns the name of the user of this machine.
func userName() string {
	u, err := user.Current()
	if err != nil || u.Username == "" {
		return "unknown"
	}
	return u.Username
}
