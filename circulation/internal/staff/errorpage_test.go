package staff_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/schemas/fault"
	"checkoutlock/web/auth"
)

func TestErrorPage_HasNoSecrets(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err    error
		status int
		code   string
		words  []string
	}{
		"storage is away": {
			err: fault.Wrap(errors.New("dial tcp 10.1.1.1"), fault.Unavailable, "Storage could not be reached"), status: 503,
			code: "UNAVAILABLE", words: []string{
				"Not available right now", "Nothing can be lent now.", "Storage could not be reached",
				"This page tries again by itself every 10 seconds.",
			},
		},
		"storage is slow": {
			err: fmt.Errorf("GET http://10.1.1.1: %w", context.DeadlineExceeded), status: 504, code: "TIMEOUT",
			words: []string{"Not available right now", "took too long"},
		},
		"something inside": {
			err: errors.New("dial tcp 10.1.1.1 password=x"), status: 500, code: "INTERNAL",
			words: []string{"Something went wrong", "The service could not make this page."},
		},
	}
	for name, tt := range tests {
		for _, path := range []string{"/staff/diku/", "/staff/diku/timing", "/staff/diku/check-outs"} {
			t.Run(name+" "+path, func(t *testing.T) {
				t.Parallel()
				p := visit(t, &library{err: tt.err}).get(t, path)
				p.want(t, tt.status, append(tt.words, "Give this number to your support: "+p.header.Get("X-Okapi-Request-Id"))...)
				p.lacks(t, "10.1.1.1", "password")
				p.has(t, `href="/staff/diku/"`)
				if got := p.header.Get(fault.Header); got != tt.code {
					t.Errorf("got code %q, want %q", got, tt.code)
				}
			})
		}
	}
}

// Programs read pages too, and have to know when they may try again.
func TestErrorPage_SaysWhenToTryAgain(t *testing.T) {
	t.Parallel()
	r := &http.Request{Header: http.Header{}}
	r.SetBasicAuth("Ada", "wrong")
	v := visitAs(t, &library{}, auth.Basic, r.Header)
	for range 5 {
		v.get(t, "/staff/diku/").want(t, http.StatusUnauthorized)
	}
	p := v.get(t, "/staff/diku/")
	p.want(t, http.StatusTooManyRequests)
	if after := p.header.Get("Retry-After"); after == "" {
		t.Error("after wrong passwords, there is no Retry-After")
	}
	p = visit(t, &library{err: fault.New(fault.Unavailable, "Storage was not reached")}).get(t, "/staff/diku/")
	if after := p.header.Get("Retry-After"); after != "1" {
		t.Errorf("while storage is away, Retry-After is %q", after)
	}
}

// An error page asks storage nothing: it may be what went wrong.
func TestErrorPage_NamesTheVisitorWithoutAskingStorage(t *testing.T) {
	t.Parallel()
	basic := func(password string) http.Header {
		r := &http.Request{Header: http.Header{}}
		r.SetBasicAuth("Ada", password)
		return r.Header
	}
	tests := map[string]struct {
		mode   auth.Mode
		header http.Header
		want   string
	}{
		"a name from the sign-in": {mode: auth.Basic, header: basic("correct horse"), want: "Signed in as Ada"},
		"no password":             {mode: auth.Basic, header: basic("wrong")},
		"an id alone":             {mode: auth.Gateway, header: granted(admin.MaySeeSettings)},
		"no sign-in":              {mode: auth.None, header: granted()},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &library{err: fault.New(fault.Unavailable, "Storage was not reached")}
			p := visitAs(t, l, tt.mode, tt.header).get(t, "/staff/diku/")
			p.want(t, p.status, tt.want)
			if tt.want == "" {
				p.lacks(t, "Signed in as")
			}
			if l.named != 0 || p.status == http.StatusOK {
				t.Errorf("got %d after looking up %d names, want an error page without one", p.status, l.named)
			}
		})
	}
}

// The edge counts visitors who left as 499.
func TestErrorPage_IsNotSentToAVisitorWhoLeft(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"while storage answers": fault.Wrap(context.Canceled, fault.Unavailable, "Storage could not be reached"),
		"while the page waits":  fmt.Errorf("waiting: %w", context.Canceled),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := visit(t, &library{err: err})
			p := v.get(t, "/staff/diku/")
			if log := v.logged.String(); p.status != 499 || !strings.Contains(log, "status=499") ||
				strings.Contains(log, "level=ERROR") {
				t.Errorf("got %d, logged %s", p.status, log)
			}
		})
	}
}
