// Command withdb runs another command with a throw-away PostgreSQL, and sets
// TEST_DATABASE_URL to its address:
//
//	go run ./integration-tests/cmd/withdb -- go test work
//
// -isolation LEVEL, before --, is the isolation level that sessions have by themselves. If
// TEST_DATABASE_URL is set already, it starts none. PG_BIN names the folder of PostgreSQL's
// binaries. The exit code is the command's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"checkoutlock/devpostgres"
)

const urlVariable = "TEST_DATABASE_URL"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "withdb:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	fs := flag.NewFlagSet("withdb", flag.ContinueOnError)
	isolation := fs.String("isolation", "read committed", "the default isolation level of sessions")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if args = fs.Args(); len(args) == 0 {
		return errors.New("usage: withdb [-isolation LEVEL] -- command [argument ...]")
	}
	environ := os.Environ()
	if os.Getenv(urlVariable) == "" {
		log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
		pg, startErr := devpostgres.Start(ctx, devpostgres.Options{
			BinDir: os.Getenv("PG_BIN"), Log: log,
			// Autovacuum would analyze tables that an earlier test has filled, and so change later plans.
			Settings: map[string]string{"default_transaction_isolation": *isolation, "autovacuum": "off"},
		})
		if startErr != nil {
			return startErr
		}
		defer func() { err = errors.Join(err, pg.Stop()) }()
		environ = append(environ, urlVariable+"="+pg.URL())
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // it runs the user's command
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environ, os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd.Run()
}
