package app

import (
	"log/slog"

	"checkoutlock/circulation/internal/storageclient"
	"checkoutlock/config"
	"checkoutlock/web"
	"checkoutlock/web/describe"
)

// Module describes the service.
func Module() describe.Module {
	return describe.Module{
		Name: "mod-circulation-checkoutlock", Title: "Circulation with the check-out lock", Folio: "circulation",
		Own: "circulation-checkoutlock 1.0", Requires: storageclient.Interfaces(), Calls: storageclient.Permissions(),
		Port: DefaultConfig().HTTP.Port, Settings: &Config{}, ListRoutes: listRoutes,
	}
}

// listRoutes needs no storage.
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
