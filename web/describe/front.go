package describe

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/labstack/echo/v4"

	"checkoutlock/web"
)

// OpenAPIPath is where each service has its OpenAPI document.
const OpenAPIPath = "/openapi.json"

// NewFront returns the front that answers the OpenAPI document of the routes and of its own. The first
// request makes the document, because that takes longer than the rest of a service's start.
func (m Module) NewFront(routes []web.Route) (web.Front, error) {
	own := web.Route{Method: http.MethodGet, Path: OpenAPIPath, NoTenant: true, Endpoint: web.Handle(
		nil, web.Answer{Status: http.StatusOK, Body: map[string]any{}})}
	m.ListRoutes = func() ([]web.Route, error) { return append(routes, own), nil }
	write := sync.OnceValues(func() ([]byte, error) {
		doc, err := m.OpenAPI()
		if err != nil {
			return nil, err
		}
		return json.Marshal(doc)
	})
	own.Endpoint = web.Handle(func(c echo.Context) error {
		raw, err := write()
		if err != nil {
			return fmt.Errorf("writing the OpenAPI document: %w", err)
		}
		return c.JSONBlob(http.StatusOK, raw)
	}, own.Endpoint.Answers...)
	return web.Front{Name: "documents", Routes: []web.Route{own}}, nil
}
