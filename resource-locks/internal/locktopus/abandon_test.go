package locktopus

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"
)

// late is how much later than its end a lock may be handed on.
const late = 50 * time.Millisecond

func TestAbandonTimeout(t *testing.T) {
	tests := map[string]struct {
		query string
		end   func(c *client)
		want  time.Duration
	}{
		"a close after 1500 ms": {
			query: "&abandon-timeout-ms=1500", end: (*client).close, want: 1500 * time.Millisecond,
		},
		"a drop after 300 ms":        {query: "&abandon-timeout-ms=300", end: (*client).drop, want: 300 * time.Millisecond},
		"a close at once":            {query: "&abandon-timeout-ms=0", end: (*client).close, want: 0},
		"a close after the default":  {query: "", end: (*client).close, want: time.Minute},
		"a mistake after 300 ms":     {query: "&abandon-timeout-ms=300", end: mistake, want: 300 * time.Millisecond},
		"a drop after the default":   {query: "", end: (*client).drop, want: time.Minute},
		"a drop after an hour":       {query: "&abandon-timeout-ms=3600000", end: (*client).drop, want: time.Hour},
		"a close after half a frame": {query: "&abandon-timeout-ms=300", end: halfFrame, want: 300 * time.Millisecond},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *harness) {
				holder, waiter := f.connect(tt.query), f.connect("")
				holder.lock("w a", "w b")
				holder.wants("1", "lock", "acquired")
				waiter.lock("w b", "r a")
				waiter.wants("2", "lock", "enqueued")
				start := time.Now()
				tt.end(holder)
				waiter.check(waiter.next(), "2", "lock", "acquired")
				if took := time.Since(start); took < tt.want || took > tt.want+late {
					t.Errorf("the lock was handed on after %v, want %v", took, tt.want)
				}
			})
		})
	}
}

func mistake(c *client) {
	c.send("rubbish")
	c.wantsError("not valid JSON", closeProtocol)
}

func halfFrame(c *client) {
	_, _ = c.ws.NetConn().Write([]byte{0x81, 0xfe, 0x01}) // a header of a text frame, not whole
	c.drop()
}

func TestAbandonTimeout_HasNoUpperEnd(t *testing.T) {
	inBubble(t, func(f *harness) {
		first := f.connect(fmt.Sprintf("&abandon-timeout-ms=%d", int64(1)<<62))
		first.lock("w a")
		first.wants("1", "lock", "acquired")
		if c, _, err := f.dial("namespace=library&abandon-timeout-ms=9223372036854775807"); err != nil {
			t.Errorf("the longest time-out is refused: %v", err)
		} else {
			c.lock("w b")
			c.wants("2", "lock", "acquired")
			c.drop()
		}
		waiter := f.connect("")
		waiter.lock("w b")
		waiter.wants("3", "lock", "enqueued")
		<-time.After(2 * time.Minute) // longer than the default
		waiter.wantsNothing()
	})
}

func TestAbandonTimeout_DelaysOnlyHeldLocks(t *testing.T) {
	inBubble(t, func(f *harness) {
		released, never, a := f.connect(""), f.connect(""), f.connect("")
		released.lock("w a")
		released.wants("1", "lock", "acquired")
		released.release()
		released.wants("1", "release", "ready")
		released.close()
		never.close()
		a.lock("w a")
		a.wants("2", "lock", "acquired")
	})
}

// TestAbandonTimeout_SparesUnknownGrants lets another process release the lock that a client waits
// for. The client leaves before its own process has read that.
func TestAbandonTimeout_SparesUnknownGrants(t *testing.T) {
	inBubble(t, func(f *harness) {
		holder, waiter, next := f.connect(""), f.connect(""), f.connect("")
		holder.lock("w a")
		holder.wants("1", "lock", "acquired")
		waiter.lock("w a")
		waiter.wants("2", "lock", "enqueued")
		claims, err := f.store.ListClaims(t.Context(), "library", 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.store.Withdraw(t.Context(), uuid.New(), "library", claims[0].ID); err != nil {
			t.Fatal(err)
		}
		waiter.drop()
		synctest.Wait()
		next.lock("w a")
		next.wants("3", "lock", "acquired")
	})
}

// TestAbandonTimeout_SparesFailedReleases has an outage while the holder releases its lock.
func TestAbandonTimeout_SparesFailedReleases(t *testing.T) {
	inBubble(t, func(f *harness) {
		holder, waiter := f.connectTwo("")
		f.store.broken.Store(true)
		holder.release()
		holder.wantsError("Internal server error", websocket.CloseInternalServerErr)
		f.store.broken.Store(false)
		<-time.After(2 * time.Second) // the end is sent again
		waiter.wants("2", "lock", "acquired")
	})
}

func TestAbandonTimeout_PutsTheOwnerBehindItsOwnLock(t *testing.T) {
	inBubble(t, func(f *harness) {
		c := f.connect("&abandon-timeout-ms=1000")
		c.lock("w a")
		c.wants("1", "lock", "acquired")
		c.drop()
		again := f.connect("")
		again.lock("w a")
		again.wants("2", "lock", "enqueued")
		again.check(again.next(), "2", "lock", "acquired")
	})
}

func TestAbandonTimeout_RunsAfterAStop(t *testing.T) {
	inBubble(t, func(f *harness) {
		holder, waiter := f.connectTwo("&abandon-timeout-ms=5000")
		start := time.Now()
		f.close()
		holder.wantsClose(websocket.CloseGoingAway)
		waiter.wantsClose(websocket.CloseGoingAway)

		next := newHarness(t, f.store.Store)
		defer next.close()
		c := next.connect("")
		c.lock("w a")
		c.wants("3", "lock", "enqueued")
		c.check(c.next(), "3", "lock", "acquired")
		if took := time.Since(start); took < 5*time.Second || took > 5*time.Second+2*closeTimeout+late {
			t.Errorf("after a restart the lock was handed on after %v, want 5s", took)
		}
	})
}
