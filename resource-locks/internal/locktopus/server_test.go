package locktopus

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"checkoutlock/schemas/fault"
)

const upgradeKey = "dGhlIHNhbXBsZSBub25jZQ=="

func TestServer_AnswersBadRequestsAsText(t *testing.T) {
	inBubble(t, func(f *harness) {
		tests := map[string]struct {
			path   string
			header []string
			status int
			want   string
		}{
			"no namespace":              {path: "/v1", status: 400, want: needsNamespace},
			"an empty namespace":        {path: "/v1?namespace=", status: 400, want: needsNamespace},
			"an empty time-out":         {path: "/v1?namespace=a&abandon-timeout-ms=", status: 400, want: wrongAbandon},
			"a fraction":                {path: "/v1?namespace=a&abandon-timeout-ms=1.5", status: 400, want: wrongAbandon},
			"a negative time-out":       {path: "/v1?namespace=a&abandon-timeout-ms=-1", status: 400, want: wrongAbandon},
			"a time-out that is a word": {path: "/v1?namespace=a&abandon-timeout-ms=soon", status: 400, want: wrongAbandon},
			"10^20": {
				path: "/v1?namespace=a&abandon-timeout-ms=100000000000000000000", status: 400, want: wrongAbandon,
			},
			"a broken escape": {path: "/v1?namespace=%zz", status: 400, want: "cannot be read"},
			"no upgrade":      {path: "/v1?namespace=a", status: 400, want: "web sockets only"},
			"an upgrade to HTTP/2": {
				path: "/v1?namespace=a", header: []string{
					"Connection", "Upgrade", "Upgrade", "h2c",
				}, status: 400, want: "web sockets only",
			},
			"another version": {
				path: "/v1?namespace=a", status: 400, want: "web sockets only",
				header: []string{
					"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "8", "Sec-WebSocket-Key", upgradeKey,
				},
			},
			"a wrong key": {
				path: "/v1?namespace=a", status: 400, want: "web sockets only",
				header: []string{
					"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "short",
				},
			},
			"statistics of no namespace":         {path: "/stats_v1", status: 400, want: needsNamespace},
			"statistics of an empty namespace":   {path: "/stats_v1?namespace=", status: 400, want: needsNamespace},
			"statistics of an unknown namespace": {path: "/stats_v1?namespace=never", status: 404, want: "Namespace not found"},
			"a namespace without any connection": {path: "/stats_v1?namespace=a", status: 404, want: "Namespace not found"},
			"another path":                       {path: "/v2?namespace=a", status: 404, want: "not found"},
			"a namespace that is too long": {
				path: "/v1?namespace=" + strings.Repeat("n", 300), status: 400, want: "web sockets only",
			},
			"an upgrade in too long a namespace": {
				path: "/v1?namespace=" + strings.Repeat("n", 300), header: upgrade, status: 400, want: "255",
			},
			"an upgrade in a namespace with NUL": {path: "/v1?namespace=a%00b", header: upgrade, status: 400, want: "NUL"},
			"an upgrade in what is no UTF-8":     {path: "/v1?namespace=%ff", header: upgrade, status: 400, want: "UTF-8"},
			"statistics of too long a namespace": {
				path: "/stats_v1?namespace=" + strings.Repeat("n", 300), status: 404, want: "Namespace not found",
			},
			"statistics of what is no UTF-8 text": {path: "/stats_v1?namespace=%ff", status: 404, want: "Namespace not found"},
		}
		for name, tt := range tests {
			status, body := f.get(tt.path, tt.header...)
			if status != tt.status || !strings.Contains(body, tt.want) {
				t.Errorf("%s: got %d %s, want %d %s", name, status, body, tt.status, tt.want)
			}
		}
		if n := f.server.connections(); n != 0 {
			t.Errorf("%d connections are counted after refusals", n)
		}
	})
}

var upgrade = []string{
	"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", upgradeKey,
}

func TestServer_SeparatesNamespaces(t *testing.T) {
	inBubble(t, func(f *harness) {
		for _, name := range []string{
			"library", "Library", " library", "a/b", "a", "Žluťoučký kůň", "図書館", "library ", "%2F",
		} {
			c := f.connectTo("namespace=" + url.QueryEscape(name))
			if got := f.stats(name); got != [5]int64{} {
				t.Errorf("the new namespace %q has %v", name, got)
			}
			c.lock("w a")
			c.wants("1", "lock", "acquired")
			if got := f.stats(name); got != [5]int64{1, 0, 1, 0, 1} {
				t.Errorf("the namespace %q has %v", name, got)
			}
		}
	})
}

func TestServer_CountsGroupsAndResources(t *testing.T) {
	inBubble(t, func(f *harness) {
		a, b, c := f.connect(""), f.connect(""), f.connect("")
		a.lock("w a", "w b")
		a.wants("1", "lock", "acquired")
		b.lock("w a")
		b.wants("2", "lock", "enqueued")
		c.lock("r a")
		c.wants("3", "lock", "enqueued")
		if got := f.stats("library"); got != [5]int64{3, 2, 1, 2, 2} {
			t.Errorf("while two wait: %v", got)
		}
		a.release()
		b.wants("2", "lock", "acquired")
		b.release()
		c.wants("3", "lock", "acquired")
		c.release()
		c.wants("3", "release", "ready")
		if got := f.stats("library"); got != [5]int64{3, 0, 0, 0, 0} {
			t.Errorf("after all releases: %v", got)
		}
	})
}

// A frame before the answer to the upgrade might be another request's, as seen by a proxy.
func TestServer_RefusesFramesBeforeTheUpgrade(t *testing.T) {
	inBubble(t, func(f *harness) {
		conn, err := f.pipes.dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(conn, "GET /v1?namespace=library HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"+
			"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n\x81\x80abcd")
		if answer, _ := io.ReadAll(conn); err != nil || len(answer) > 0 {
			t.Errorf("got %q, %v, want no upgrade", answer, err)
		}
		synctest.Wait()
		if f.server.connections() != 0 || f.countPanics() != 0 {
			t.Errorf("%d connections are counted, and %d panics", f.server.connections(), f.countPanics())
		}
	})
}

func TestServer_BoundsConnections(t *testing.T) {
	inBubble(t, func(f *harness) {
		f.server.limit = 2
		first, _ := f.connect(""), f.connect("")
		if _, status, err := f.dial("namespace=library"); err == nil || status != http.StatusServiceUnavailable {
			t.Errorf("a third connection: %d, %v", status, err)
		}
		first.close()
		f.connect("").close()
	})
}

func TestServer_StopEndsAllConnections(t *testing.T) {
	inBubble(t, func(f *harness) {
		idle, holder, waiter := f.connect(""), f.connect(""), f.connect("")
		holder.lock("w a")
		holder.wants("1", "lock", "acquired")
		waiter.lock("w a")
		waiter.wants("2", "lock", "enqueued")
		start := time.Now()
		f.server.stopAll()
		if took := time.Since(start); took > closeTimeout {
			t.Errorf("the stop took %v", took)
		}
		for _, c := range []*client{idle, holder, waiter} {
			c.wantsClose(websocket.CloseGoingAway)
		}
		if _, status, err := f.dial("namespace=library"); err == nil || status != http.StatusServiceUnavailable {
			t.Errorf("a connection after the stop: %d, %v", status, err)
		}
		if got := f.stats("library"); got != [5]int64{2, 0, 1, 0, 1} {
			t.Errorf("the lock does not stay for its abandon time-out: %v", got)
		}
	})
}

func TestServer_StopDoesNotWaitForADeafClient(t *testing.T) {
	inBubble(t, func(f *harness) {
		defer openDeaf(f).Close()
		start := time.Now()
		f.server.stopAll()
		if took := time.Since(start); took > 3*closeTimeout {
			t.Errorf("the stop took %v", took)
		}
	})
}

func TestServer_StopDoesNotWaitForAClientThatOnlyPings(t *testing.T) {
	inBubble(t, func(f *harness) {
		conn := openDeaf(f)
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		done := make(chan struct{})
		defer func() { <-done }()
		defer conn.Close()
		go func() {
			defer close(done)
			var err error
			for err == nil {
				_, err = conn.Write([]byte{0x89, 0x80, 0, 0, 0, 0}) // a ping without a text
				<-time.After(100 * time.Millisecond)
			}
		}()
		synctest.Wait()
		start := time.Now()
		f.server.stopAll()
		if took := time.Since(start); took > closeTimeout {
			t.Errorf("the stop took %v", took)
		}
	})
}

func TestServer_AnswersAFailingStore(t *testing.T) {
	inBubble(t, func(f *harness) {
		holder, other := f.connect(""), f.connect("")
		holder.lock("w a")
		holder.wants("1", "lock", "acquired")
		f.store.Fail(fault.New(fault.Unavailable, "the database is away"))
		other.lock("w b")
		other.wantsError("the database is away", websocket.CloseInternalServerErr)
		holder.release()
		holder.wantsError("the database is away", websocket.CloseInternalServerErr)
		if status, body := f.get("/stats_v1?namespace=library"); status != http.StatusServiceUnavailable ||
			!strings.Contains(body, "away") {
			t.Errorf("the statistics are %d %s", status, body)
		}
		if _, status, err := f.dial("namespace=library"); err == nil || status != http.StatusServiceUnavailable {
			t.Errorf("a new connection: %d, %v", status, err)
		}
	})
}

func TestServer_LogsALostLeaseOnce(t *testing.T) {
	inBubble(t, func(f *harness) {
		var holders []*client
		for i := range 3 {
			holders = append(holders, f.connect(""))
			holders[i].lock(fmt.Sprint("w ", i))
			holders[i].wants(fmt.Sprint(i+1), "lock", "acquired")
		}
		f.store.Fail(fault.New(fault.Unavailable, "away"))
		for _, holder := range holders {
			holder.wantsError("the lock is gone", websocket.CloseInternalServerErr)
		}
		<-time.After(5500 * time.Millisecond) // the ends are tried again, and not at this moment
		if _, status, err := f.dial("namespace=library"); err == nil || status != http.StatusServiceUnavailable {
			t.Errorf("a new connection: %d, %v", status, err)
		}
		f.store.Fail(nil)
		late := f.connect("")
		f.store.Fail(fault.New(fault.Unavailable, "away"))
		late.lock("w a")
		late.wantsError("", websocket.CloseInternalServerErr)
		log := f.log.String()
		for text, want := range map[string]int{
			"the lease was lost": 1, "a connection ends": 0, "ending": 1, "a request failed": 0,
		} {
			if n := strings.Count(log, text); n != want {
				t.Errorf("%d lines with %q, want %d: %s", n, text, want, log)
			}
		}
		f.store.Fail(nil)
	})
}
