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

// NewFront returns the front that answers the OpenAPI document of a service, to which the front is added.
// The first request makes the document, because that takes longer than the rest of a service's start.
func (m Module) NewFront(s *web.Service) (web.Front, error) {
	m.ListRoutes = func() ([]web.Route, error) { return s.Routes(), nil }
	write := sync.OnceValues(func() ([]byte, error) {
		doc, err := m.OpenAPI()
		if err != nil {
			return nil, err
		}
		return json.Marshal(doc)
	})
	answer := func(c echo.Context) error {
		raw, err := write()
		if err != nil {
			return fmt.Errorf("writing the OpenAPI document: %w", err)
		}
		return c.JSONBlob(http.StatusOK, raw)
	}
	return web.Front{Name: "documents", Routes: []web.Route{{
		Method: http.MethodGet, Path: OpenAPIPath, NoTenant: true,
		Endpoint: web.Handle(answer, web.Answer{Status: http.StatusOK, Body: map[string]any{}}),
	}}}, nil
}
