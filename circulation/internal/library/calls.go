package library

import (
	"context"

	"golang.org/x/sync/errgroup"

	"checkoutlock/schemas/fault"
)

// Calls run at once. They are an errgroup.Group, except that a panic of a call is its error:
// it would end the process.
type Calls struct{ group *errgroup.Group }

// NewCalls returns no calls yet, and a context that ends with the first error.
func NewCalls(ctx context.Context) (*Calls, context.Context) {
	group, ctx := errgroup.WithContext(ctx)
	return &Calls{group}, ctx
}

// SetLimit bounds how many calls run at once. Go waits then.
func (c *Calls) SetLimit(n int) { c.group.SetLimit(n) }

// Go runs a call in a goroutine of its own.
func (c *Calls) Go(call func() error) {
	c.group.Go(func() (err error) {
		defer fault.Recover(&err)
		return call()
	})
}

// Wait waits for all calls, and returns the first error.
func (c *Calls) Wait() error { return c.group.Wait() }
