package app

import (
	"net/http"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/circulation-storage/internal/sample"
	"checkoutlock/web"
	"checkoutlock/web/describe"
)

func module() describe.Module {
	return describe.Module{
		Name: "mod-circulation-storage-checkoutlock", Title: "Circulation storage with the check-out lock", Folio: "circulation-storage",
		Own: "circulation-storage-checkoutlock 1.0", Port: DefaultConfig().HTTP.Port, Settings: &Config{},
		Records: sample.Examples(),
	}
}

// Descriptor returns FOLIO's module descriptor of the service. It leaves out the interfaces that
// other modules provide.
func Descriptor(without ...string) (describe.Descriptor, error) {
	routes, err := httpapi.ListRoutes()
	if err != nil {
		return describe.Descriptor{}, err
	}
	// Behind a gateway, circulation asks it whether storage is ready.
	routes = append(routes, web.Route{Method: http.MethodGet, Path: "/admin/health/ready", NoTenant: true})
	return module().Descriptor(routes, without...)
}

// OpenAPI returns the service's OpenAPI document, which it answers at /openapi.json.
func OpenAPI() (map[string]any, error) {
	routes, err := httpapi.ListRoutes()
	if err != nil {
		return nil, err
	}
	return module().OpenAPI(routes)
}
