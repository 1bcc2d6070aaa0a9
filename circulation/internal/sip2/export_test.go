package sip2

import (
	"time"

	"checkoutlock/web"
)

// Limits are the times of a connection that tests shorten.
type Limits struct {
	Idle, Login, Line, Wrong, Resend time.Duration
	MaxConns                         int
}

// DefaultLimits are those of New.
func DefaultLimits() Limits {
	l := defaultLimits()
	return Limits{l.idle, l.login, l.line, l.wrong, l.resend, l.maxConns}
}

// NewLimited is New with other limits.
func NewLimited(o Options, limits Limits) (web.Front, error) {
	l, err := newListener(o)
	if err != nil {
		return web.Front{}, err
	}
	l.idle, l.login, l.line, l.wrong, l.resend = limits.Idle, limits.Login, limits.Line, limits.Wrong, limits.Resend
	l.maxConns = limits.MaxConns
	return web.Front{Name: "sip2", Listener: l}, nil
}
