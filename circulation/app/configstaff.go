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

// The range of MACHINE_PATIENCE.
const (
	minPatience = time.Second
	maxPatience = 5 * time.Minute
)

// validateStaff checks the settings that are about staff. The password is never
// repeated.
func (c *Config) validateStaff() error {
	var errs []error
	if c.MachinePatience < minPatience || c.MachinePatience > maxPatience {
		errs = append(errs, config.OutOfRange("MACHINE_PATIENCE", c.MachinePatience, fmt.Sprintf("%s to %s", minPatience, maxPatience)))
	}
	if !knownZone(c.TimeZone) {
		errs = append(errs, config.OutOfRange("TZ", strconv.Quote(c.TimeZone), "a time zone such as Europe/Berlin, or UTC"))
	}
	switch c.StaffAuth {
	case auth.Gateway:
	case auth.Basic:
		if err := auth.CheckPassword(c.StaffPassword); err != nil {
			errs = append(errs, fmt.Errorf("STAFF_PASSWORD, which STAFF_AUTH=basic needs, %w", err))
		}
	case auth.None:
		if !onLoopback(c.HTTP) {
			errs = append(errs, fmt.Errorf("STAFF_AUTH is none, which lets everybody in and is allowed on loopback only, but HTTP_ADDR is %q: "+
				"leave HTTP_ADDR empty, or set STAFF_AUTH to gateway, or to basic with a STAFF_PASSWORD", c.HTTP.Addr))
		}
	default:
		errs = append(errs, config.OutOfRange("STAFF_AUTH", strconv.Quote(string(c.StaffAuth)), "gateway, basic, none"))
	}
	return errors.Join(errs...)
}

// knownZone tells whether package time knows the zone. As it does, and as POSIX has
// it, a colon may come first, and a file's path may stand for a name.
func knownZone(tz string) bool {
	name := strings.TrimPrefix(tz, ":")
	if filepath.IsAbs(name) {
		content, err := os.ReadFile(name) //nolint:gosec // whoever starts the service names it
		if err == nil {
			_, err = time.LoadLocationFromTZData(name, content)
		}
		return err == nil
	}
	_, err := time.LoadLocation(name)
	return err == nil && name != "Local" // which is no name there
}

// onLoopback tells whether no other machine can reach the service. Names other than
// localhost are not looked up: what they mean may change.
func onLoopback(c config.HTTP) bool {
	ip, err := netip.ParseAddr(c.Addr)
	return c.Addr == "" || strings.EqualFold(c.Addr, "localhost") || (err == nil && ip.Unmap().IsLoopback())
}
