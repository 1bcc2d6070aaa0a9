package web

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// singleHeaders are the headers of a call that have one value. Of two different values,
// a gateway and a service might read different ones.
var singleHeaders = []string{
	okapi.TenantHeader, okapi.UserIDHeader, okapi.RequestIDHeader, okapi.TokenHeader, okapi.PermissionsHeader,
}

// checkHeaders refuses FOLIO's headers that contradict themselves or cannot be
// read, and puts the permissions into the context's call if they are believed.
func (o Options) checkHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		for _, name := range singleHeaders {
			if values := r.Header.Values(name); len(slices.Compact(slices.Clone(values))) > 1 {
				return fault.New(fault.Malformed, "The header %s was sent %d times with different values, allowed is one value", name, len(values))
			}
		}
		permissions, err := readPermissions(r.Header)
		if err != nil {
			return err
		}
		if o.BelievePermissions {
			info := okapi.FromContext(r.Context())
			info.Permissions = permissions
			c.SetRequest(r.WithContext(okapi.NewContext(r.Context(), info)))
		}
		return next(c)
	}
}

// readPermissions returns the permissions that a gateway sends as a JSON list of
// strings. An absent or empty header grants nothing.
func readPermissions(header http.Header) ([]string, error) {
	sent := header.Get(okapi.PermissionsHeader)
	if sent == "" {
		return nil, nil
	}
	var list []*string // a null is no string
	if err := json.Unmarshal([]byte(sent), &list); err != nil || list == nil || slices.Contains(list, nil) {
		return nil, fault.New(fault.Malformed, `The header %s must be a JSON list of strings, such as ["users.item.get"], not %s`,
			okapi.PermissionsHeader, fault.Shown(sent))
	}
	permissions := make([]string, len(list))
	for i, permission := range list {
		permissions[i] = *permission
	}
	return permissions, nil
}
