package app

import (
	"log/slog"

	"checkoutlock/circulation/internal/storageclient"
	"checkoutlock/config"
	"checkoutlock/web/describe"
)

var module = describe.Module{
	Name: "mod-circulation-checkoutlock", Title: "Circulation with the check-out lock", Folio: "circulation",
	Own: "circulation-checkoutlock 1.0", Requires: storageclient.Interfaces(), Calls: storageclient.Permissions(),
	Port: DefaultConfig().HTTP.Port, Settings: &Config{},
}

// Descriptor returns FOLIO's module descriptor of the service.
func Descriptor() (describe.Descriptor, error) {
	cfg := DefaultConfig()
	if err := config.Load(&cfg, nil); err != nil {
		return describe.Descriptor{}, err
	}
	a, err := connect(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return describe.Descriptor{}, err
	}
	defer a.storage.Close()
	return module.Descriptor(a.service.Routes())
}
