package storageclient

import (
	"net"
	"net/http"
	"time"
)

// Storage is reached over two groups of connections, so that what ends a check-out
// never waits behind what begins others.
//
// The calls of a check-out that take, use or give back a lock or a claim follow
// each other, so one connection for each check-out that is worked on is enough,
// and some more for the renewals of claims. All else, which is reading for the
// most part, shares a bounded group and waits for its turn there.
const (
	renewalShare = 4 // one connection more for so many check-outs
	readShare    = 2 // one connection for so many check-outs, for all other calls
	leastReads   = 4
)

// settleConnections is the size of the first group for n check-outs at once.
func settleConnections(n int) int { return n + max(1, n/renewalShare) }

// readConnections is the size of the second one.
func readConnections(n int) int { return max(leastReads, n/readShare) }

// newHTTPClient returns a client with at most so many connections to storage. All
// of them are kept while they are idle: under load, none is closed to be made
// again.
//
// Go's transport sends a request again by itself only over a kept connection
// that turned out dead: a GET, or a DELETE (see send), and any other method only
// if not a byte of it was written. So one try of a POST reaches storage once.
func newHTTPClient(connections int) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: 2 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
			MaxConnsPerHost:     connections,
			MaxIdleConnsPerHost: connections,
			IdleConnTimeout:     idleTimeout,
			TLSHandshakeTimeout: 5 * time.Second,
			DisableCompression:  true, // storage is near
			ForceAttemptHTTP2:   true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
