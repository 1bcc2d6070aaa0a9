package app

import (
	"checkoutlock/resource-locks/internal/httpapi"
	"checkoutlock/web/describe"
)

func module() describe.Module {
	return describe.Module{
		Name: "mod-resource-locks", Title: "Resource locks", Own: "resource-locks 1.0", Port: DefaultConfig().HTTP.Port, Settings: &Config{},
	}
}

// Descriptor returns FOLIO's module descriptor of the pages for operators. The lock protocols have
// addresses of their own, which no gateway of FOLIO serves.
func Descriptor() (describe.Descriptor, error) {
	front, err := httpapi.New(httpapi.Options{})
	if err != nil {
		return describe.Descriptor{}, err
	}
	return module().Descriptor(front.Routes)
}

// OpenAPI returns the document that the service answers at /openapi.json.
func OpenAPI() (map[string]any, error) {
	front, err := httpapi.New(httpapi.Options{})
	if err != nil {
		return nil, err
	}
	return module().OpenAPI(front.Routes)
}
