// Command circulation lends a library's items and takes them back. Its settings
// are environment variables; see docs/settings.md.
package main

import (
	"context"
	"flag"
	"fmt"
	_ "time/tzdata" // the staff pages show times by TZ, also in an image without zone files

	"checkoutlock/circulation/app"
	"checkoutlock/config"
	"checkoutlock/config/command"
	"checkoutlock/web"
)

const usage = `circulation lends a library's items and takes them back.

  circulation [serve]        run the service
  circulation -healthcheck   exit with 0 if the service on this machine is ready

Settings are environment variables, described in docs/settings.md: STORAGE_URL, STORAGE_READY_TENANT,
CHECKOUT_LOCK_FEATURE_ENABLED, LOCK_TTL_MS, RETRY_INTERVAL_MS, CHECKOUT_CONCURRENCY, CHECKOUT_QUEUE_WAIT,
INSTANCE_NAME, STAFF_AUTH, STAFF_PASSWORD, MACHINE_PATIENCE, TZ, PORT, HTTP_ADDR, REQUEST_TIMEOUT, SHUTDOWN_TIMEOUT,
DRAIN_DELAY, LOG_LEVEL.
`

func main() { command.Main("circulation", usage, run) }

func run(ctx context.Context, p command.Process) error {
	name, args := p.Split()
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, but got %q", name, args)
	}
	switch name {
	case "-h", "-help", "--help", "help":
		return flag.ErrHelp
	case "-healthcheck", "--healthcheck":
		return web.Healthcheck(ctx, app.DefaultConfig().HTTP, p.Environ)
	case "serve":
		return serve(ctx, p)
	}
	return fmt.Errorf("there is no command %q; circulation help lists them", name)
}

func serve(ctx context.Context, p command.Process) error {
	cfg := app.DefaultConfig()
	if err := config.Load(&cfg, p.Environ); err != nil {
		return err
	}
	config.SetHeapGrowth(p.Environ)
	config.SetHeapLimit(p.Environ)
	log := cfg.Log.New(p.Stderr, "circulation")
	config.WarnOfMisspelt(ctx, log, &cfg, p.Environ)
	a, err := app.New(ctx, cfg, log)
	if err == nil {
		err = a.Run(ctx)
	}
	return command.LogError(ctx, log, err)
}
