package app

import (
	"log/slog"

	"checkoutlock/circulation/internal/storageclient"
	"checkoutlock/config"
	"checkoutlock/web"
	"checkoutlock/web/describe"
)

func module() describe.Module {
	return describe.Module{
		Name: "mod-circulation-checkoutlock", Title: "Circulation with the check-out lock", Folio: "circulation",
		Own: "circulation-checkoutlock 1.0", Requires: storageclient.Interfaces(), Calls: storageclient.Permissions(),
		Port: DefaultConfig().HTTP.Port, Settings: &Config{},
	}
}

// Descriptor returns FOLIO's module descriptor of the service.
func Descriptor() (describe.Descriptor, error) {
	routes, err := listRoutes()
	if err != nil {
		return describe.Descriptor{}, err
	}
	return module().Descriptor(routes)
}

// OpenAPI returns the service's OpenAPI document, which it answers at /openapi.json.
func OpenAPI() (map[string]any, error) {
	routes, err := listRoutes()
	if err != nil {
		return nil, err
	}
	return module().OpenAPI(routes)
}

// listRoutes returns the routes for documents. No storage need run.
func listRoutes() ([]web.Route, error) {
	cfg := DefaultConfig()
	if err := config.Load(&cfg, nil); err != nil {
		return nil, err
	}
	service, err := connect(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer service.Stopped()
	return service.Routes(), nil
}
