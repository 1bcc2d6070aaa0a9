package resolver_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"checkoutlock/config/resolver"
	"checkoutlock/config/resolver/resolvertest"
)

// goTimeout is shorter than Go's own wait for one answer.
const goTimeout = 4 * time.Second

// unknownName is the code of an answer about a name that does not exist.
const unknownName = 3

func TestResolver(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		server       resolvertest.Server
		found        bool
		absent, lost bool // which error
	}{
		"the first answer is lost": {server: resolvertest.Server{Lost: 1}, found: true},
		"all answers are lost":     {server: resolvertest.Server{Lost: 1000}, lost: true},
		"an unknown name":          {server: resolvertest.Server{Code: unknownName}, absent: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := resolver.New(goTimeout/10, tt.server.Start(t))
			r.PreferGo = true
			start := time.Now()
			addrs, err := r.LookupHost(t.Context(), "db.test.")
			if took := time.Since(start); took > goTimeout {
				t.Errorf("it took %s", took)
			}
			if tt.found {
				if err != nil || len(addrs) != 1 || addrs[0] != "127.0.0.1" {
					t.Errorf("got %v, %v", addrs, err)
				}
				return
			}
			dns, ok := errors.AsType[*net.DNSError](err)
			if !ok || dns.Name != "db.test." || dns.IsTimeout != tt.lost || dns.IsNotFound != tt.absent {
				t.Errorf("got %v, %#v", addrs, err)
			}
		})
	}
}

// A text that changes with each probe of readiness would be a line of the log each time.
func TestResolver_SaysTheSameOfEachLostAnswer(t *testing.T) {
	t.Parallel()
	r := resolver.New(goTimeout/100, (&resolvertest.Server{Lost: 1000}).Start(t))
	r.PreferGo = true
	_, first := r.LookupHost(t.Context(), "db.test.")
	_, second := r.LookupHost(t.Context(), "db.test.")
	if first == nil || second == nil || first.Error() != second.Error() {
		t.Errorf("got %v, then %v", first, second)
	}
}

func TestResolver_EndsWithItsCaller(t *testing.T) {
	t.Parallel()
	r := resolver.New(2*goTimeout, (&resolvertest.Server{Lost: 1000}).Start(t))
	r.PreferGo = true
	ctx, cancel := context.WithTimeout(t.Context(), goTimeout/100)
	defer cancel()
	start := time.Now()
	if addrs, err := r.LookupHost(ctx, "db.test."); err == nil || time.Since(start) > goTimeout {
		t.Errorf("got %v, %v after %s", addrs, err, time.Since(start))
	}
}
