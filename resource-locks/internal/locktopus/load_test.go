package locktopus

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/web"
)

// startTCP returns the URL of a front that listens on loopback.
func startTCP(t *testing.T) (*server, string) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	claims := engine.NewClaims(enginetest.NewStore(), observer{}, log)
	s := newServer(Options{
		Settings: Settings{AbandonTimeout: time.Minute}, Claims: claims, Panics: web.NewPanics(prometheus.NewRegistry(), log),
		Log: log, CountRefusal: func() bool { return true },
	})
	web := httptest.NewServer(s)
	stop := enginetest.RunLoops(claims)
	t.Cleanup(func() {
		s.stopAll()
		web.Close()
		stop()
	})
	for leased := false; !leased; { // locks fail before the first lease
		ticket, err := claims.Lock(t.Context(), "start", "test", 0, []engine.Resource{{}})
		if leased = err == nil; leased {
			claims.Disconnect(t.Context(), ticket, true)
		}
		runtime.Gosched()
	}
	return s, "ws" + strings.TrimPrefix(web.URL, "http")
}

func TestServer_LetsOneOwnerAtATimeIn(t *testing.T) {
	t.Parallel()
	const owners, rounds = 32, 10
	_, url := startTCP(t)
	var inside, entered atomic.Int32
	var running sync.WaitGroup
	for range owners {
		running.Go(func() {
			ws, answer, err := websocket.DefaultDialer.Dial(url+"/v1?namespace=race", nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer answer.Body.Close()
			defer ws.Close()
			for range rounds {
				if err := lockOnce(ws, &inside); err != nil {
					t.Error(err)
					return
				}
				entered.Add(1)
			}
		})
	}
	running.Wait()
	if got := entered.Load(); got != owners*rounds {
		t.Errorf("%d locks were held, want %d", got, owners*rounds)
	}
}

// lockOnce waits for a lock and releases it. inside counts the holders.
func lockOnce(ws *websocket.Conn, inside *atomic.Int32) error {
	err := ws.WriteMessage(websocket.TextMessage, []byte(`{"action":"lock","resources":[{"type":"w","path":["one"]}]}`))
	var r response
	for err == nil && r.State != stateAcquired {
		err = ws.ReadJSON(&r)
	}
	if err != nil {
		return err
	}
	if n := inside.Add(1); n != 1 {
		return fmt.Errorf("%d connections hold the lock at once", n)
	}
	inside.Add(-1)
	if err = ws.WriteMessage(websocket.TextMessage, []byte(`{"action":"release"}`)); err != nil {
		return err
	}
	if err = ws.ReadJSON(&r); err == nil && r.State != stateReady {
		err = fmt.Errorf("the release was answered with %v", r)
	}
	return err
}

func TestServer_NeedsLittleMemoryForIdleConnections(t *testing.T) { // alone, so that it measures itself
	const connections, most = 1000, 32 << 20
	s, url := startTCP(t)
	before := usedMemory()
	for range connections {
		openIdle(t, strings.TrimPrefix(url, "ws://"))
	}
	if n := s.connections(); n != connections {
		t.Fatalf("%d connections are open, want %d", n, connections)
	}
	used := usedMemory() - before
	t.Logf("%d idle connections take %d KiB", connections, used>>10)
	if used > most {
		t.Errorf("%d idle connections take %d bytes, want at most %d", connections, used, most)
	}
}

// openIdle opens a web socket whose client keeps no buffers.
func openIdle(t *testing.T, addr string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, "GET /v1?namespace=idle HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: "+
		"websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "+upgradeKey+"\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReaderSize(conn, 512), nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the upgrade: %v, %v", answer, err)
	}
	_ = answer.Body.Close()
}

func usedMemory() int64 {
	runtime.GC()
	runtime.GC() // the second one empties the pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

func TestConnection_AnswersBeforeItReadsTheRest(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		flood func(ws *websocket.Conn) error
		want  error
	}{
		"a large message": {
			func(ws *websocket.Conn) error { return ws.WriteMessage(websocket.TextMessage, make([]byte, 64<<20)) }, errTooLarge,
		},
		"pings": {func(ws *websocket.Conn) (err error) {
			for range 200_000 {
				if err = ws.WriteControl(websocket.PingMessage, make([]byte, 100), time.Now().Add(time.Minute)); err != nil {
					break
				}
			}
			return err
		}, errFlood},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, url := startTCP(t)
			ws, answer, err := websocket.DefaultDialer.Dial(url+"/v1?namespace=flood", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			var writing sync.WaitGroup
			defer writing.Wait()
			defer ws.Close() // ends the writing
			writing.Go(func() { _ = tt.flood(ws) })
			_ = ws.SetReadDeadline(time.Now().Add(time.Minute))
			_, text, err := ws.ReadMessage()
			if err != nil || string(text) != "communication error: "+tt.want.Error() {
				t.Fatalf("got %q, %v", text, err)
			}
			if _, _, err = ws.ReadMessage(); !websocket.IsCloseError(err, closeProtocol) {
				t.Errorf("closed with %v", err)
			}
		})
	}
}
