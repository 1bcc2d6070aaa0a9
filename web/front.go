package web

import "context"

// Front is one protocol of a service. It has routes at the service's HTTP address, or a
// Listener with an address of its own. The zero value serves nothing: the front is off.
type Front struct {
	// Name finds the front's address, see Service.URL.
	Name   string
	Routes []Route
	// BeforeClose ends requests of the routes that wait, so that they do not delay the stop.
	// It may be nil.
	BeforeClose func()
	Listener    Listener
	// Workers run beside the requests.
	Workers []Worker
}

// Listener serves one protocol at an address.
type Listener interface {
	// Listen opens the address, so that an address in use is reported before the service
	// starts to work.
	Listen(ctx context.Context) error
	// URL is where clients reach it: host:port if the protocol has no URLs. Call it after
	// Listen.
	URL() string
	// Serve serves until Drain is called. Requests do not end with ctx. It returns nil
	// after an orderly stop.
	Serve(ctx context.Context) error
	// Drain stops Serve after the running requests have finished. Without Serve it closes
	// the address.
	Drain(ctx context.Context) error
}
