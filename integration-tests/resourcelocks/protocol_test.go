package resourcelocks

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// errRefused stands for a protocol's ordinary answer for a key that another owner has.
	errRefused = errors.New("refused")
	// errAway stands for a protocol's answer while service or PostgreSQL are away.
	errAway = errors.New("away")
)

// protocol uses one front as its clients do.
type protocol struct {
	name string
	// acquire takes a key for an owner that holds nothing yet. Errors: errRefused, errAway;
	// every other one is a defect.
	acquire func(ctx context.Context, at addresses, key, owner string) (*hold, error)
}

// protocols are all fronts. Locktopus refuses no owner: it puts others in line. So its client
// leaves the line at once.
var protocols = []protocol{
	{"locket", acquireLocket},
	{"locktopus", tryLocktopus},
	{"sunbird", acquireSunbird},
	{"mutex", acquireMutex},
}

// waitingProtocols are all fronts, with clients of Locktopus that stay in line.
var waitingProtocols = []protocol{protocols[0], {"locktopus", awaitLocktopus}, protocols[2], protocols[3]}

// hold is a lock as its owner knows it.
type hold struct {
	fence int64 // 0 if the protocol does not show it
	// ends is when the owner must count the lock as lost: the TTL after the request was sent,
	// or the abandon time-out after the connection has ended. Zero is never.
	ends    func() time.Time
	release func(ctx context.Context) error
	// leave ends the owner without a release, as a killed client does.
	leave func()
}

// holdUntilTTL returns a hold that a TTL ends.
func holdUntilTTL(sent time.Time, release func(ctx context.Context) error) *hold {
	return &hold{ends: func() time.Time { return sent.Add(lockTTL) }, release: release, leave: func() {}}
}

// isOrdinary reports whether an owner just tries later.
func isOrdinary(err error) bool { return errors.Is(err, errRefused) || errors.Is(err, errAway) }

func errAnswer(err error, format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{err}, args...)...)
}
