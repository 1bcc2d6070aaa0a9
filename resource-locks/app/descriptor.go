package app

import (
	"checkoutlock/resource-locks/internal/httpapi"
	"checkoutlock/web"
	"checkoutlock/web/describe"
)

// Module describes the pages for operators. The lock protocols have addresses of their own, which no
// gateway of FOLIO serves.
func Module() describe.Module {
	return describe.Module{
		Name: "mod-resource-locks", Title: "Resource locks", Own: "resource-locks 1.0", Port: DefaultConfig().HTTP.Port, Settings: &Config{},
		ListRoutes: func() ([]web.Route, error) {
			front, err := httpapi.New(httpapi.Options{})
			return front.Routes, err
		},
	}
}
