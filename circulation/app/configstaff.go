package app

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"checkoutlock/circulation/internal/auth"
	"checkoutlock/config"
)

// validateStaff checks the settings for staff. No message repeats the password.
func (c *Config) validateStaff() error {
	errs := []error{config.CheckRange("MACHINE_PATIENCE", c.MachinePatience, time.Second, 5*time.Minute)}
	if !isKnownZone(c.TimeZone) {
		errs = append(errs, config.OutOfRange("TZ", strconv.Quote(c.TimeZone), "a time zone such as Europe/Berlin, or UTC"))
	}
	switch c.StaffAuth {
	case auth.Gateway:
	case auth.Basic:
		if err := auth.CheckPassword(c.StaffPassword); err != nil {
			errs = append(errs, fmt.Errorf("STAFF_PASSWORD, which STAFF_AUTH=basic needs, %w", err))
		}
	case auth.None:
		if !isLoopback(c.HTTP) {
			errs = append(errs, fmt.Errorf("STAFF_AUTH is none, which lets everybody in and is allowed on loopback only, but HTTP_ADDR is %q: "+
				"leave HTTP_ADDR empty, or set STAFF_AUTH to gateway, or to basic with a STAFF_PASSWORD", c.HTTP.Addr))
		}
	default:
		errs = append(errs, config.OutOfRange("STAFF_AUTH", strconv.Quote(string(c.StaffAuth)), "gateway, basic, none"))
	}
	return errors.Join(errs...)
}

// isKnownZone reports whether package time knows the zone. As in POSIX, it may begin with a
// colon, and may be the path of a file.
func isKnownZone(tz string) bool {
	name := strings.TrimPrefix(tz, ":")
	if filepath.IsAbs(name) {
		content, err := os.ReadFile(name) //nolint:gosec // the operator names it
		if err == nil {
			_, err = time.LoadLocationFromTZData(name, content)
		}
		return err == nil
	}
	_, err := time.LoadLocation(name)
	return err == nil && name != "Local" // LoadLocation alone knows that name
}

// isLoopback reports whether no other machine can reach the service. It does not resolve
// names other than localhost, because their addresses may change.
func isLoopback(c config.HTTP) bool {
	ip, err := netip.ParseAddr(c.Addr)
	return c.Addr == "" || strings.EqualFold(c.Addr, "localhost") || (err == nil && ip.Unmap().IsLoopback())
}
