package records

import (
	"context"
	"net/netip"
	"time"

	"checkoutlock/schemas/fault"
)

// SelfCheckTerminal is a machine that speaks SIP2 to circulation (ours). A login is unique in its
// tenant; a machine names another tenant than the listener's behind an @.
var SelfCheckTerminal = Type{
	Name: "self-check terminal", Path: "/self-check-terminals", Collection: "selfCheckTerminals", Table: "self_check_terminal",
	Schema: "self-check-terminal", Permission: "circulation-storage.self-check-terminals", Versioned: true, Prepare: prepareTerminal,
	Indexes:    newIndexes(fields{Text: {"login", "name", "institution"}, Boolean: {"enabled"}}, "servicePointId"),
	Unique:     uniqueFields("self_check_terminal", "login"),
	References: []Reference{newReference("self_check_terminal", "servicePointId", "service_point")},
}

// prepareTerminal puts the password's hash in its place, and refuses what a listener could not use. A
// terminal without a password keeps the stored one.
func prepareTerminal(_ context.Context, _ Reader, w Write) error {
	r := w.Record
	if r["enabled"] == nil {
		r["enabled"] = true
	}
	if err := checkTerminal(r); err != nil {
		return err
	}
	password := r.Text("password")
	r["hasPassword"] = password != "" || w.Stored["hasPassword"] == true
	if password == "" {
		return nil
	}
	hash, err := HashPassword(password)
	if err != nil {
		return err
	}
	delete(r, "password")
	r["passwordHash"] = hash
	return nil
}

func checkTerminal(r Record) error {
	if r.Text("servicePointId") == "" && r["servicePointFromLogin"] != true {
		return fault.StorageRefusal("servicePointId is required, unless servicePointFromLogin is true", fault.Param("servicePointId", ""))
	}
	zone := r.Text("timeZone")
	if _, err := time.LoadLocation(zone); err != nil || zone == "Local" {
		return fault.StorageRefusal("timeZone must be the name of a time zone, such as Europe/Berlin", fault.Param("timeZone", fault.Shown(zone)))
	}
	addresses, _ := r["addresses"].([]any)
	for _, v := range addresses {
		text, _ := v.(string)
		_, noAddress := netip.ParseAddr(text)
		if _, err := netip.ParsePrefix(text); err != nil && noAddress != nil {
			return fault.StorageRefusal("addresses must be addresses such as 10.1.2.3, or networks such as 10.1.0.0/16", fault.Param("addresses", fault.Shown(text)))
		}
	}
	return nil
}
