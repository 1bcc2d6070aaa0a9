package sip2_test

import (
	"net/netip"
	"testing"

	"checkoutlock/circulation/internal/sip2"
)

func TestTerminal_MayConnectFromItsAddresses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		address, from string
		want          bool
	}{
		{"10.1.2.3", "10.1.2.3", true},
		{"10.1.2.3", "10.1.2.4", false},
		{"10.1.0.0/16", "10.1.2.3", true},
		{"fe80::1", "fe80::1%eth0", true},
		{"fe80::/64", "fe80::1%eth0", true},
		{"fe80::1%eth0", "fe80::1%eth0", true},
		{"fe80::1%eth1", "fe80::1%eth0", true}, // each host numbers its interfaces by itself
		{"fe80::2", "fe80::1%eth0", false},
		{"::ffff:10.1.2.3", "10.1.2.3", true},
		{"::ffff:10.1.0.0/112", "10.1.2.3", true},
		{"::ffff:10.1.0.0/112", "10.2.2.3", false},
		{"::/0", "10.1.2.3", false},
		{"here", "10.1.2.3", false},
	} {
		if got := sip2.Admits([]string{tt.address}, netip.MustParseAddr(tt.from)); got != tt.want {
			t.Errorf("%s admits %s: %t, want %t", tt.address, tt.from, got, tt.want)
		}
	}
}
