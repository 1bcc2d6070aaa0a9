package locktopus

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"checkoutlock/resource-locks/internal/engine"
)

func TestConnection_LocksAndReleases(t *testing.T) {
	inBubble(t, func(f *harness) {
		a, b := f.connect(""), f.connect("")
		a.lock("w books/1")
		a.wants("1", "lock", "acquired")
		b.lock("w books/1")
		b.wants("2", "lock", "enqueued")
		b.wantsNothing()
		a.release()
		a.wants("1", "release", "ready")
		b.wants("2", "lock", "acquired")
		b.release()
		b.wants("2", "release", "ready")
		a.lock("w books/1")
		a.wants("3", "lock", "acquired")
		a.lock("w books/2")
		a.wantsError("invalid action [lock] in state [acquired]", closeProtocol)
	})
}

func TestConnection_ReleasesWhileItWaits(t *testing.T) {
	inBubble(t, func(f *harness) {
		a, b := f.connectTwo("")
		b.release()
		b.wants("2", "release", "ready")
		a.release()
		a.wants("1", "release", "ready")
		b.wantsNothing()
		b.lock("w a")
		b.wants("3", "lock", "acquired")
	})
}

func TestConnection_AnswersMistakes(t *testing.T) {
	lockA := `{"action":"lock","resources":[{"type":"w","path":["a"]}]}`
	tests := map[string]struct {
		before []string // messages that are right
		frame  string
		want   string
	}{
		"release in ready": {frame: `{"action":"release"}`, want: "invalid action [release] in state [ready]"},
		"lock in acquired": {
			before: []string{lockA}, frame: lockA, want: "invalid action [lock] in state [acquired]",
		},
		"another action":          {frame: `{"action":"steal"}`, want: "invalid action: steal"},
		"an action in upper case": {frame: `{"action":"LOCK"}`, want: "invalid action: LOCK"},
		"an empty object":         {frame: `{}`, want: "invalid action: "},
		"null":                    {frame: `null`, want: "invalid action: "},
		"an unknown type": {
			frame: `{"action":"lock","resources":[{"type":"x","path":["a"]}]}`,
			want:  "cannot build resource lock: invalid lock type: x",
		},
		"no type": {
			frame: `{"action":"lock","resources":[{"path":["a"]}]}`, want: "cannot build resource lock: invalid lock type: ",
		},
		"no resources":   {frame: `{"action":"lock"}`, want: "at least one resource"},
		"an empty list":  {frame: `{"action":"lock","resources":[]}`, want: "at least one resource"},
		"no JSON":        {frame: `lock a`, want: "not valid JSON"},
		"an empty frame": {frame: ``, want: "not valid JSON"},
		"an array":       {frame: `[1]`, want: "must be an object"},
		"a path that is a text": {
			frame: `{"action":"lock","resources":[{"type":"w","path":"a"}]}`, want: "resources must be a list",
		},
		"resources that are an object": {frame: `{"action":"lock","resources":{}}`, want: "resources must be a list"},
		"a NUL": {
			frame: `{"action":"lock","resources":[{"type":"w","path":["a\u0000"]}]}`, want: "is no character",
		},
		"no UTF-8": {
			frame: "{\"action\":\"lock\",\"resources\":[{\"type\":\"w\",\"path\":[\"\xff\"]}]}", want: "not valid UTF-8",
		},
		"too many resources": {
			frame: `{"action":"lock","resources":[` + strings.Repeat(`{"type":"r"},`, engine.MaxResources) +
				`{"type":"r"}]}`, want: "allowed: 1000",
		},
		"too long a path": {
			frame: `{"action":"lock","resources":[{"type":"w","path":["` + strings.Repeat("p", engine.MaxPathBytes) + `"]}]}`,
			want:  "allowed: 4096",
		},
		"too deep a path": {
			frame: `{"action":"lock","resources":[{"type":"w","path":["p"` + strings.Repeat(`,"p"`, engine.MaxSegments) + `]}]}`,
			want:  "has 65 segments, allowed: 64",
		},
		"too many paths to begin with": {
			frame: `{"action":"lock","resources":[` +
				strings.Repeat(`{"type":"r","path":[""`+strings.Repeat(`,"p"`, 62)+`]},`, 64) + `{"type":"r"}]}`,
			want: "begin with 4097 paths in all, allowed: 4096",
		},
		"too large a message": {
			frame: `{"action":"` + strings.Repeat("x", maxMessage) + `"}`, want: "more than 262144 bytes",
		},
		"a mistake in enqueued": {
			before: []string{
				`{"action":"lock","resources":[{"type":"w","path":["taken"]}]}`,
			}, frame: lockA, want: "invalid action [lock] in state [enqueued]",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *harness) {
				holder, offender, other := f.connect(""), f.connect("&abandon-timeout-ms=1000"), f.connect("")
				holder.lock("w taken")
				holder.wants("1", "lock", "acquired")
				for _, message := range tt.before {
					offender.send(message)
					offender.next()
				}
				offender.send(tt.frame)
				offender.wantsError(tt.want, closeProtocol)

				other.lock("w a") // the offender's lock goes after its abandon time-out
				for text := other.next(); !strings.Contains(text, "acquired"); {
					text = other.next()
				}
				holder.release()
				holder.wants("1", "release", "ready")
			})
		})
	}
}

func TestConnection_ReadsAllKindsOfFrames(t *testing.T) {
	inBubble(t, func(f *harness) {
		c := f.connect("")
		lock, release := []byte(`{"action":"lock","resources":[{"type":"w","path":["a"]}]}`), []byte(`{"action":"release"}`)
		if err := c.ws.WriteMessage(websocket.BinaryMessage, lock); err != nil {
			t.Fatal(err)
		}
		c.wants("1", "lock", "acquired")
		sendInFragments(c, release)
		c.wants("1", "release", "ready")
		sendInFragments(c, lock)
		c.wants("2", "lock", "acquired")
	})
}

// sendInFragments sends a message as frames of one byte, with a ping between them.
func sendInFragments(c *client, message []byte) {
	c.t.Helper()
	kind := byte(websocket.TextMessage)
	for i, b := range message {
		c.sendFrame(kind, string(b))
		kind = continuation
		if i == len(message)/2 {
			c.sendFrame(final|websocket.PingMessage, "between")
		}
	}
	c.sendFrame(final|continuation, "")
}

// A connection that ends while a message is read must leave no claim behind.
func TestConnection_HandlesNoMessageAfterItsEnd(t *testing.T) {
	inBubble(t, func(f *harness) {
		c := openDeaf(f) // it answers no close frame
		defer c.Close()
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = io.Copy(io.Discard, c)
		}()
		if err := sendFrame(c, websocket.TextMessage, `{"action":"lock","resources":`); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the first part is read
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			f.server.stopAll()
		}()
		synctest.Wait() // the connection has ended, and waits for the client's close frame
		if err := sendFrame(c, final|continuation, `[{"type":"w","path":["a"]}]}`); err != nil {
			t.Fatal(err)
		}
		<-stopped
		<-read
		if claims, err := f.claims.List(t.Context(), "", 1); err != nil || len(claims) != 0 {
			t.Errorf("the claims are %+v, %v, want none", claims, err)
		}
	})
}

func TestConnection_TakesTheLargestClaim(t *testing.T) {
	inBubble(t, func(f *harness) {
		c, other := f.connect(""), f.connect("")
		resources := make([]string, engine.MaxResources)
		for i := range resources {
			resources[i] = fmt.Sprintf("w shelf/%d/%s", i, strings.Repeat("x", 40))
		}
		c.lock(resources...)
		c.wants("1", "lock", "acquired")
		other.lock(resources[999])
		other.wants("2", "lock", "enqueued")
		other.release()
		other.wants("2", "release", "ready")
		segment := strings.Repeat("d", engine.MaxPathBytes/engine.MaxSegments-1) // and a separator
		deep := "w " + strings.Repeat(segment+"/", engine.MaxSegments-1) + segment
		other.lock(deep)
		other.wants("3", "lock", "acquired")
	})
}

func TestConnection_AnswersPingsAndTheClose(t *testing.T) {
	inBubble(t, func(f *harness) {
		c := f.connect("")
		if err := c.ws.WriteControl(websocket.PingMessage, []byte("are you there"), time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if got := <-c.pongs; got != "are you there" {
			t.Errorf("the pong has %q", got)
		}
		c.close()
		if n := f.server.connections(); n != 0 {
			t.Errorf("%d connections are open after the close", n)
		}
	})
}

func TestConnection_EndsAfterSilence(t *testing.T) {
	inBubble(t, func(f *harness) {
		silent := f.connect("&abandon-timeout-ms=0")
		silent.ws.SetPingHandler(func(string) error { return nil })
		idle, waiter := f.connect(""), f.connect("")
		silent.lock("w a")
		silent.wants("1", "lock", "acquired")
		waiter.lock("w a")
		waiter.wants("2", "lock", "enqueued")
		start := time.Now()
		waiter.check(waiter.next(), "2", "lock", "acquired")
		if took := time.Since(start); took < silenceTimeout || took > silenceTimeout+5*time.Second {
			t.Errorf("the silent connection lost its lock after %v, want %v", took, silenceTimeout)
		}
		<-time.After(time.Hour)
		idle.lock("w b") // its pongs kept it
		idle.wants("3", "lock", "acquired")
	})
}

func TestConnection_EndsWhenTheClientDoesNotRead(t *testing.T) {
	inBubble(t, func(f *harness) {
		defer openDeaf(f).Close()
		synctest.Wait()
		if n := f.server.connections(); n != 1 {
			t.Fatalf("%d connections, want 1", n)
		}
		<-time.After(pingInterval + writeTimeout + 2*closeTimeout + time.Second)
		if n := f.server.connections(); n != 0 {
			t.Error("a client that does not read keeps its connection")
		}
	})
}

// openDeaf opens a connection whose client reads the answer to the upgrade and no more.
func openDeaf(f *harness) net.Conn {
	f.t.Helper()
	conn, err := f.pipes.dial(f.t.Context(), "", "")
	if err != nil {
		f.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, "http://pipe/v1?namespace=library", http.NoBody)
	if err != nil {
		f.t.Fatal(err)
	}
	for i := 0; i < len(upgrade); i += 2 {
		r.Header.Set(upgrade[i], upgrade[i+1])
	}
	if err := r.Write(conn); err != nil {
		f.t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		f.t.Fatalf("the upgrade: %v, %v", answer, err)
	}
	_ = answer.Body.Close()
	return conn
}

func TestConnection_BoundsFramesPerSecond(t *testing.T) {
	for _, flood := range []struct {
		name    string
		kind    byte
		payload string
		begins  bool // a message
	}{
		{name: "pings", kind: final | websocket.PingMessage},
		{name: "pongs", kind: final | websocket.PongMessage},
		{name: "parts of a message", kind: continuation, payload: " ", begins: true},
		{name: "empty parts of a message", kind: continuation, begins: true},
	} {
		t.Run(flood.name, func(t *testing.T) {
			inBubble(t, func(f *harness) {
				flooder, other := f.connect(""), f.connect("")
				if flood.begins {
					flooder.sendFrame(websocket.TextMessage, "{")
				}
				for range 2 * frameBurst {
					_ = sendFrame(flooder.ws.NetConn(), flood.kind, flood.payload) // the server closes
				}
				flooder.wantsError("too many frames", closeProtocol)
				other.lock("w a")
				other.wants("1", "lock", "acquired")
			})
		})
	}
}

func TestConnection_AllowsSteadyFrames(t *testing.T) {
	inBubble(t, func(f *harness) {
		c := f.connect("")
		for i := range frameBurst {
			c.lock("w a")
			c.wants(fmt.Sprint(i+1), "lock", "acquired")
			c.release()
			c.wants(fmt.Sprint(i+1), "release", "ready")
			<-time.After(2 * time.Second / frameRate)
		}
	})
}

func TestConnection_EndsWhenItsLockIsLostAtOnce(t *testing.T) {
	inBubble(t, func(f *harness) {
		f.store.stored = func(q engine.Claim) {
			err := f.claims.ForceWithdraw(t.Context(), q.Namespace, q.ID, engine.Note{By: "ann", Reason: "stuck"})
			if err != nil {
				t.Error(err)
			}
		}
		holder := f.connect("")
		holder.lock("w a")
		holder.wantsError("the lock is gone", websocket.CloseInternalServerErr)
	})
}

// The news of a lock may come after its release, when the client waits for another one.
func TestConnection_PassesOverEarlierLocks(t *testing.T) {
	inBubble(t, func(f *harness) {
		earlier, err := f.claims.Lock(t.Context(), "library", "x", 0, []engine.Resource{{Path: []string{"a"}, Write: true}})
		if err != nil {
			t.Fatal(err)
		}
		c := &connection{session: session{state: stateEnqueued}}
		c.handleTicket(t.Context(), earlier)
		if c.session.state != stateEnqueued {
			t.Errorf("the state is %s", c.session.state)
		}
	})
}

func TestConnection_EndsWhenItsLockIsLost(t *testing.T) {
	inBubble(t, func(f *harness) {
		holder, waiter := f.connectTwo("")
		claims, err := f.claims.List(t.Context(), "", 1)
		if err != nil || len(claims) != 1 {
			t.Fatalf("the claims are %v, %v", claims, err)
		}
		if claims[0].Owner == "" {
			t.Error("the claim does not name its connection")
		}
		if err := f.claims.ForceWithdraw(t.Context(), "library", claims[0].ID,
			engine.Note{By: "ann", Reason: "stuck"}); err != nil {
			t.Fatal(err)
		}
		holder.wantsError("the lock is gone", websocket.CloseInternalServerErr)
		waiter.wants("2", "lock", "acquired")
		if !strings.Contains(f.log.String(), "a connection ends") {
			t.Error("the log does not say why the connection ended")
		}
	})
}
