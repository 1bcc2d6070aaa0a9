package locktopus

import (
	"strings"
	"testing"
	"time"

	"checkoutlock/config"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		environ []string
		want    string // in the error; empty is none
	}{
		"off":     {nil, ""},
		"on":      {[]string{"LOCKTOPUS_ADDR=127.0.0.1:9009", "LOCKTOPUS_ABANDON_TIMEOUT=0s"}, ""},
		"no port": {[]string{"LOCKTOPUS_ADDR=localhost"}, `LOCKTOPUS_ADDR is "localhost", allowed: host:port`},
		"a time before the end": {
			[]string{"LOCKTOPUS_ABANDON_TIMEOUT=-1s"}, "LOCKTOPUS_ABANDON_TIMEOUT is -1s, allowed: 0s to 876000h",
		},
		"a time without a unit":  {[]string{"LOCKTOPUS_ABANDON_TIMEOUT=60"}, "LOCKTOPUS_ABANDON_TIMEOUT"},
		"a time that has no end": {[]string{"LOCKTOPUS_ABANDON_TIMEOUT=1000000h"}, "LOCKTOPUS_ABANDON_TIMEOUT"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c Settings
			err := config.Load(&c, tt.environ)
			if (err == nil) != (tt.want == "") || (err != nil && !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if len(tt.environ) == 0 && c.AbandonTimeout != time.Minute {
				t.Errorf("the default is %v, want a minute", c.AbandonTimeout)
			}
		})
	}
}
