package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/config"
	"checkoutlock/schemas/fault"
)

// logLevel is the answer of /admin/log-level.
type logLevel struct {
	Level string `json:"level"`
}

// logLevelRoutes read and set the level of the log, for callers on this host.
func logLevelRoutes(o Options) []Route {
	read := func(echo.Context) (logLevel, error) { return logLevel{config.LevelOf(o.Log)}, nil }
	set := func(c echo.Context) (logLevel, error) {
		level := QueryOf(c).Text("level")
		return logLevel{level}, config.SetLevel(c.Request().Context(), o.Log, level)
	}
	routes := []Route{
		{Method: http.MethodGet, Endpoint: JSON(http.StatusOK, read)},
		{
			Method: http.MethodPut, Endpoint: JSON(http.StatusOK, set),
			Query: Strict(Parameter{Name: "level", Meaning: "the least level of lines", Required: true, Allowed: config.Levels}),
		},
	}
	for i := range routes {
		routes[i].Path, routes[i].NoTenant, routes[i].Uncompressed = "/admin/log-level", true, true
		routes[i].Guards, routes[i].Refusals = []echo.MiddlewareFunc{requireThisMachine}, []fault.Code{fault.Forbidden}
	}
	return routes
}
