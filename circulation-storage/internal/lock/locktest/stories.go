package locktest

import (
	"testing"
	"time"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/schemas/fault"
)

// step is one call of the store: an acquire, a hand-over, a release by the holder, by the
// request or by force, a withdrawal, or the ageing of a lock.
type step struct {
	acquire string // patron
	ttl     time.Duration
	request string       // acquisition id; "" for none
	as      string       // name for the lock, for later steps
	outcome lock.Outcome // of a successful acquire
	same    string       // the lock with the same id; "" wants a new id
	// handOver names the lock that is handed over to the patron and request of acquire.
	handOver string

	release  string // name of the lock
	force    string // likewise
	outdated bool   // whether the released lock was outdated
	withdraw string
	// releaseOf is the patron of a release by request; as names the lock that it finds.
	releaseOf string

	age string
	by  time.Duration

	want fault.Code // "" means success
}

// wantReleased compares the released lock with the granted one.
func (s step) wantReleased(t *testing.T, got, granted lock.Lock, err error) {
	t.Helper()
	if err == nil && (got.ID != granted.ID || got.UserID != granted.UserID || got.TTL != granted.TTL || got.Outdated != s.outdated) {
		t.Errorf("%+v released %+v, want %+v", s, got, granted)
	}
}

const (
	second = time.Second
	minute = time.Minute
	hour   = time.Hour
)

var releaseAcquisitionStories = map[string][]step{
	"the request's lock goes": {
		{acquire: "ann", ttl: minute, request: "R1", as: "first", outcome: lock.Granted},
		{releaseOf: "ann", request: "R1", as: "first"},
		{release: "first", want: fault.NotFound},
		{acquire: "ann", ttl: minute, request: "R2", outcome: lock.Granted},
	},
	"a second release finds nothing": {
		{acquire: "ann", ttl: minute, request: "R1", as: "first", outcome: lock.Granted},
		{releaseOf: "ann", request: "R1", as: "first"},
		{releaseOf: "ann", request: "R1", want: fault.NotFound},
	},
	"a renewed lock goes too": {
		{acquire: "ann", ttl: minute, request: "R1", as: "first", outcome: lock.Granted},
		{acquire: "ann", ttl: minute, request: "R1", as: "again", same: "first", outcome: lock.Renewed},
		{releaseOf: "ann", request: "R1", as: "again"},
		{release: "first", want: fault.NotFound},
	},
	"another request's lock stays": {
		{acquire: "ann", ttl: minute, request: "R1", as: "first", outcome: lock.Granted},
		{releaseOf: "ann", request: "R2", want: fault.NotFound},
		{release: "first"},
	},
	"a lock without a request stays": {
		{acquire: "ann", ttl: minute, as: "first", outcome: lock.Granted},
		{releaseOf: "ann", request: "R1", want: fault.NotFound},
		{releaseOf: "ann", want: fault.NotFound},
		{release: "first"},
	},
	"the same request's lock of another patron stays": {
		{acquire: "ann", ttl: minute, request: "R1", as: "ann's", outcome: lock.Granted},
		{acquire: "bob", ttl: minute, request: "R1", as: "bob's", outcome: lock.Granted},
		{releaseOf: "ann", request: "R1", as: "ann's"},
		{release: "bob's"},
	},
	"afterwards the request is a new one": {
		{acquire: "ann", ttl: minute, request: "R1", as: "first", outcome: lock.Granted},
		{releaseOf: "ann", request: "R1", as: "first"},
		{acquire: "ann", ttl: minute, request: "R1", outcome: lock.Granted},
	},
}

var acquireStories = map[string][]step{
	"a free lock is granted": {
		{acquire: "ann", ttl: minute, outcome: lock.Granted},
	},
	"the second caller is refused": {
		{acquire: "ann", ttl: minute, outcome: lock.Granted},
		{acquire: "ann", ttl: minute, want: fault.LockHeld},
	},
	"patrons do not block each other": {
		{acquire: "ann", ttl: minute, outcome: lock.Granted},
		{acquire: "bob", ttl: minute, outcome: lock.Granted},
	},
	"past its TTL a lock is taken over": {
		{acquire: "ann", ttl: second, as: "first", outcome: lock.Granted},
		{age: "first", by: 2 * second},
		{acquire: "ann", ttl: minute, outcome: lock.TakenOver},
		{acquire: "ann", ttl: minute, want: fault.LockHeld},
	},
	"within its TTL it is not": {
		{acquire: "ann", ttl: hour, as: "first", outcome: lock.Granted},
		{age: "first", by: 59 * minute},
		{acquire: "ann", ttl: hour, want: fault.LockHeld},
	},
	"past the newcomer's TTL it is taken over too": {
		{acquire: "ann", ttl: hour, as: "first", outcome: lock.Granted},
		{age: "first", by: 2 * minute},
		{acquire: "ann", ttl: 3 * minute, want: fault.LockHeld},
		{acquire: "ann", ttl: minute, outcome: lock.TakenOver},
	},
	"TTL 0 takes over at once": {
		{acquire: "ann", ttl: hour, outcome: lock.Granted},
		{acquire: "ann", ttl: 0, outcome: lock.TakenOver},
	},
	"a lock with TTL 0 blocks no caller": {
		{acquire: "ann", ttl: 0, outcome: lock.Granted},
		{acquire: "ann", ttl: hour, outcome: lock.TakenOver},
	},
	"a lock from a clock that was set back is outdated": {
		{acquire: "ann", ttl: minute, as: "first", outcome: lock.Granted},
		{age: "first", by: -hour},
		{acquire: "ann", ttl: minute, outcome: lock.TakenOver},
	},
	"a clock that is a little behind takes nothing": {
		{acquire: "ann", ttl: minute, as: "first", outcome: lock.Granted},
		{age: "first", by: -3 * second},
		{acquire: "ann", ttl: minute, want: fault.LockHeld},
	},
	"a release frees": {
		{acquire: "ann", ttl: minute, as: "first", outcome: lock.Granted},
		{release: "first"},
		{acquire: "ann", ttl: minute, outcome: lock.Granted},
	},
	"a second release finds nothing": {
		{acquire: "ann", ttl: minute, as: "first", outcome: lock.Granted},
		{release: "first"},
		{release: "first", want: fault.NotFound},
	},
	"a release of an outdated lock reports that and deletes it": {
		{acquire: "ann", ttl: second, as: "first", outcome: lock.Granted},
		{age: "first", by: 2 * second},
		{release: "first", outdated: true},
		{release: "first", want: fault.NotFound},
	},
	"a late release does not free the next holder": {
		{acquire: "ann", ttl: second, as: "first", outcome: lock.Granted},
		{age: "first", by: 2 * second},
		{acquire: "ann", ttl: minute, as: "second", outcome: lock.TakenOver},
		{release: "first", want: fault.NotFound},
		{acquire: "ann", ttl: minute, want: fault.LockHeld},
	},
	"the same request gets its lock again, renewed": {
		{acquire: "ann", ttl: hour, request: "R1", as: "first", outcome: lock.Granted},
		{age: "first", by: 50 * minute},
		{acquire: "ann", ttl: hour, request: "R1", as: "again", same: "first", outcome: lock.Renewed},
		{age: "again", by: 50 * minute},
		{acquire: "ann", ttl: hour, request: "R2", want: fault.LockHeld},
		{release: "first"},
	},
	"another request is refused": {
		{acquire: "ann", ttl: minute, request: "R1", outcome: lock.Granted},
		{acquire: "ann", ttl: minute, request: "R2", want: fault.LockHeld},
		{acquire: "ann", ttl: minute, want: fault.LockHeld},
	},
	"the same request for another patron is another lock": {
		{acquire: "ann", ttl: minute, request: "R1", outcome: lock.Granted},
		{acquire: "bob", ttl: minute, request: "R1", outcome: lock.Granted},
	},
	"the same request gets a new id when its lock is outdated": {
		{acquire: "ann", ttl: second, request: "R1", as: "first", outcome: lock.Granted},
		{age: "first", by: 2 * second},
		{acquire: "ann", ttl: minute, request: "R1", outcome: lock.TakenOver},
		{release: "first", want: fault.NotFound},
	},
	"a request whose lock was taken over is refused": {
		{acquire: "ann", ttl: second, request: "R1", as: "first", outcome: lock.Granted},
		{age: "first", by: 2 * second},
		{acquire: "ann", ttl: minute, request: "R2", outcome: lock.TakenOver},
		{acquire: "ann", ttl: minute, request: "R1", want: fault.LockHeld},
	},
	"a release by force frees": {
		{acquire: "ann", ttl: minute, as: "first", outcome: lock.Granted},
		{acquire: "bob", ttl: minute, as: "other", outcome: lock.Granted},
		{force: "first"},
		{force: "first", want: fault.NotFound},
		{release: "first", want: fault.NotFound},
		{acquire: "ann", ttl: minute, outcome: lock.Granted},
		{acquire: "bob", ttl: minute, want: fault.LockHeld},
	},
	"an outdated lock is released by force too": {
		{acquire: "ann", ttl: second, as: "first", outcome: lock.Granted},
		{age: "first", by: 2 * second},
		{force: "first", outdated: true},
		{force: "first", want: fault.NotFound},
	},
	"a late release by force does not free the next holder": {
		{acquire: "ann", ttl: second, as: "first", outcome: lock.Granted},
		{age: "first", by: 2 * second},
		{acquire: "ann", ttl: minute, as: "second", outcome: lock.TakenOver},
		{force: "first", want: fault.NotFound},
		{acquire: "ann", ttl: minute, want: fault.LockHeld},
	},
	"a repeat of a request whose lock was released by force gets a new one": {
		{acquire: "ann", ttl: minute, request: "R1", as: "first", outcome: lock.Granted},
		{force: "first"},
		{acquire: "ann", ttl: minute, request: "R1", outcome: lock.Granted},
	},
	"an outdated lock is released by its request too": {
		{acquire: "ann", ttl: second, request: "R1", as: "first", outcome: lock.Granted},
		{age: "first", by: 2 * second},
		{releaseOf: "ann", request: "R1", as: "first", outdated: true},
		{releaseOf: "ann", request: "R1", want: fault.NotFound},
	},
	"a late release by request does not free the next holder": {
		{acquire: "ann", ttl: second, request: "R1", as: "first", outcome: lock.Granted},
		{age: "first", by: 2 * second},
		{acquire: "ann", ttl: minute, request: "R2", as: "second", outcome: lock.TakenOver},
		{releaseOf: "ann", request: "R1", want: fault.NotFound},
		{release: "second"},
	},
	"a withdrawn lock is free": {
		{acquire: "ann", ttl: minute, as: "first", outcome: lock.Granted},
		{withdraw: "first"},
		{acquire: "ann", ttl: minute, outcome: lock.Granted},
	},
	"a lock that was renewed is not withdrawn": {
		{acquire: "ann", ttl: minute, request: "R1", as: "first", outcome: lock.Granted},
		{acquire: "ann", ttl: minute, request: "R1", as: "again", same: "first", outcome: lock.Renewed},
		{withdraw: "first"},
		{acquire: "ann", ttl: minute, want: fault.LockHeld},
	},
	"a lock that was taken over is not withdrawn": {
		{acquire: "ann", ttl: second, as: "first", outcome: lock.Granted},
		{age: "first", by: 2 * second},
		{acquire: "ann", ttl: minute, outcome: lock.TakenOver},
		{withdraw: "first"},
		{acquire: "ann", ttl: minute, want: fault.LockHeld},
	},
}
