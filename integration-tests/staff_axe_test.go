package integration_test

import (
	"testing"

	"checkoutlock/integration-tests/browser"
)

// A page that writes an error to the console, or breaks its own security policy,
// fails these tests too.
func TestStaffPagesKeepNobodyOut(t *testing.T) {
	t.Parallel()
	quiet, busy := demo(t), busyDemo(t)
	for name, opts := range map[string][]browser.Option{
		"light":          nil,
		"dark":           {browser.Dark()},
		"twice as large": {browser.Zoom(2)},
	} {
		t.Run(name, func(t *testing.T) { // in turn: scenes change the library's locks
			for p, scenes := range map[*pair][]scene{quiet: quietScenes(), busy: busyScenes()} {
				tab := p.staffOfDemo(t, opts...)
				for _, s := range scenes {
					t.Log(s.name)
					s.show(t, p, tab)
					tab.Axe()
					tab.FitsWidth()
				}
			}
		})
	}
}
