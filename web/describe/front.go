package describe

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/web"
)

// OpenAPIPath is where each service has its OpenAPI document.
const OpenAPIPath = "/openapi.json"

// NewFront returns the front that answers the OpenAPI document of the routes and of its own.
func (m Module) NewFront(routes []web.Route) (web.Front, error) {
	own := web.Route{Method: http.MethodGet, Path: OpenAPIPath, NoTenant: true, Endpoint: web.Handle(
		nil, web.Answer{Status: http.StatusOK, Body: map[string]any{}})}
	doc, err := m.OpenAPI(append(routes, own))
	if err != nil {
		return web.Front{}, err
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return web.Front{}, fmt.Errorf("writing the OpenAPI document: %w", err)
	}
	own.Endpoint = web.Handle(func(c echo.Context) error { return c.JSONBlob(http.StatusOK, raw) }, own.Endpoint.Answers...)
	return web.Front{Name: "documents", Routes: []web.Route{own}}, nil
}
