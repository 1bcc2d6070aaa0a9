package app

import (
	"net/http"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/circulation-storage/internal/sample"
	"checkoutlock/web"
	"checkoutlock/web/describe"
)

// Module describes the service.
func Module() describe.Module {
	return describe.Module{
		Name: "mod-circulation-storage-checkoutlock", Title: "Circulation storage with the check-out lock", Folio: "circulation-storage",
		Own: "circulation-storage-checkoutlock 1.0", Port: DefaultConfig().HTTP.Port, Settings: &Config{},
		Records: sample.Examples(), ListRoutes: listRoutes,
	}
}

func listRoutes() ([]web.Route, error) {
	routes, err := httpapi.ListRoutes()
	// Behind a gateway, circulation asks it whether storage is ready.
	return append(routes, web.Route{Method: http.MethodGet, Path: "/admin/health/ready", NoTenant: true}), err
}
