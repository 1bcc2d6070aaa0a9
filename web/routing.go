package web

import (
	"errors"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
)

// describeRouting converts the router's errors for an unknown path or method into
// faults that name it. Both services answer them as FOLIO's errors JSON.
func describeRouting(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := next(c)
		if err == nil {
			return nil
		}
		path := fault.Shown(c.Request().URL.Path)
		switch {
		case errors.Is(err, echo.ErrNotFound):
			return addDetail(fault.New(fault.NotFound, "There is no endpoint with the path %s", path))
		case errors.Is(err, echo.ErrMethodNotAllowed):
			return addDetail(fault.New(fault.MethodNotAllowed, "The path %s does not take the method %s, allowed are %s",
				path, fault.Shown(c.Request().Method), c.Response().Header().Get(echo.HeaderAllow)))
		}
		return err
	}
}

// addDetail makes f answer its message as FOLIO's list of errors.
func addDetail(f *fault.Error) error {
	f.Details = fault.List{fault.Refusal(string(f.Code), f.Msg)}
	return f
}
