// Command circulation lends a library's items and takes them back. Its settings
// are environment variables; see docs/settings.md.
package main

import (
	"context"
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
  circulation completion     print the script that completes commands in bash
  circulation -healthcheck   exit with 0 if the service on this host is ready

`

func main() { command.Main(program.Name, usage+config.ListSettings(&app.Config{}), program.Run) }

var program = command.Program{Name: "circulation", Commands: map[string]command.Command{
	"serve": command.Plain(serve),
	"descriptor": command.Plain(func(_ context.Context, p command.Process) error {
		return command.PrintJSON(p.Stdout, func() (any, error) { return app.Module().Descriptor() })
	}),
	"healthcheck": command.Plain(func(ctx context.Context, p command.Process) error {
		return web.Healthcheck(ctx, app.DefaultConfig().HTTP, p.Environ)
	}),
}}

func serve(ctx context.Context, p command.Process) error {
	cfg := app.DefaultConfig()
	log, err := p.LoadSettings(ctx, "circulation", &cfg, &cfg.Log)
	if err != nil {
		return err
	}
	config.SetHeapGrowth(p.Environ)
	config.SetHeapLimit(p.Environ)
	return command.Serve(ctx, log, func(ctx context.Context) (*web.Service, error) { return app.New(ctx, cfg, log) })
}
