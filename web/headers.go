package web

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// isRequestID reports whether a request id may be used: 1 to 200 characters, none of which could forge a
// log line. Okapi's are such as "123456/circulation;654321/loan-storage".
func isRequestID(id string) bool {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("/;:._-", r)
	}
	return id != "" && len(id) <= 200 && !strings.ContainsFunc(id, odd)
}

// readCall reads the call's data from its headers. It replaces a request id that is
// missing or unusable. checkHeaders reads the permissions.
func readCall(r *http.Request) okapi.Call {
	info := okapi.Call{
		RequestID: r.Header.Get(okapi.RequestIDHeader),
		Token:     r.Header.Get(okapi.TokenHeader),
		Machine:   readAddress(r),
	}
	if !isRequestID(info.RequestID) {
		info.RequestID = uuid.NewString()
	}
	if sent := r.Header.Get(okapi.UserIDHeader); sent != "" {
		if id, err := uuid.Parse(sent); err == nil {
			info.UserID = id.String()
		}
	}
	return info
}

// readAddress returns the caller's address: the one that the first proxy saw, as far as the header
// X-Forwarded-For can be read, else that of the connection.
func readAddress(r *http.Request) string {
	if forwarded := r.Header.Get("X-Forwarded-For"); forwarded != "" {
		first, _, _ := strings.Cut(forwarded, ",")
		if sent, err := netip.ParseAddr(strings.TrimSpace(first)); err == nil && sent.Zone() == "" {
			return sent.Unmap().String()
		}
	}
	peer, _, _ := net.SplitHostPort(r.RemoteAddr)
	address, _, _ := strings.Cut(peer, "%") // without the zone
	return address
}

// requireTenant refuses a call without a usable tenant; there is no default.
func requireTenant(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		name := c.Request().Header.Get(okapi.TenantHeader)
		if name == "" {
			return okapi.ErrNoTenant
		}
		id, err := okapi.ParseTenant(name)
		if err != nil {
			return fault.New(fault.Malformed, "Header %s: %v", okapi.TenantHeader, err)
		}
		okapi.Carried(c.Request().Context()).Tenant = id
		return next(c)
	}
}

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
			values := r.Header.Values(name)
			if len(values) > 1 && len(slices.Compact(slices.Clone(values))) > 1 {
				return fault.New(fault.Malformed, "The header %s was sent %d times with different values, allowed is one value", name, len(values))
			}
		}
		permissions, err := readPermissions(r.Header)
		if err != nil {
			return err
		}
		if o.BelievePermissions {
			okapi.Carried(r.Context()).Permissions = permissions
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
	return convert.All(list, func(permission *string) string { return *permission }), nil
}
