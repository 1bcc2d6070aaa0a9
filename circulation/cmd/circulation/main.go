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
  circulation descriptor     print the module descriptor
  circulation version        print the version
  circulation -healthcheck   exit with 0 if the service on this machine is ready

`

func main() { command.Main("circulation", usage+config.ListSettings(&app.Config{}), run) }

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
	case "version", "-version", "--version":
		return command.PrintVersion(p.Stdout, "circulation")
	case "descriptor":
		return command.PrintJSON(p.Stdout, app.Descriptor)
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
	return command.Serve(ctx, log, func(ctx context.Context) error {
		a, err := app.New(ctx, cfg, log)
		if err != nil {
			return err
		}
		return a.Run(ctx)
	})
}
