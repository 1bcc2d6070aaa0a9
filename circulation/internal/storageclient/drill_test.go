package storageclient

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/schemas/fault"
)

// serveJob answers what comes over the connection as a storage whose installation is job. It answers a
// moment after the wait that was asked for.
func serveJob(conn net.Conn, job string) {
	requests := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(requests)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		status := http.StatusCreated
		if r.Method == http.MethodGet {
			ms, _ := strconv.Atoi(r.URL.Query().Get("wait"))
			<-time.After(time.Duration(ms+1) * time.Millisecond)
			status = http.StatusOK
		}
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d Status\r\nContent-Length: %d\r\n\r\n%s", status, len(job), job)
	}
}

func TestClient_InstallDemo(t *testing.T) {
	t.Parallel()
	const begin = `{"id":"` + someID + `",`
	for name, tt := range map[string]struct {
		job   string
		code  fault.Code
		cause string
	}{
		"done":            {job: begin + `"complete":true}`, code: "", cause: ""},
		"still under way": {job: begin + `"complete":false}`, code: fault.Unavailable, cause: "still being made"},
		"failed":          {job: begin + `"complete":true,"error":"no space"}`, code: fault.Unavailable, cause: "no space"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := New(Options{
					URL: &url.URL{Scheme: "http", Host: "storage"}, CheckOuts: 1, Observe: func(string, string, int, time.Duration) {},
				})
				c.read.dial = func(context.Context, string, string) (net.Conn, error) {
					ours, theirs := net.Pipe()
					go serveJob(theirs, tt.job)
					return ours, nil
				}
				err := c.InstallDemo(inTenant(t, "lock_drill"))
				if fault.CodeOf(err) != tt.code || err != nil && !strings.Contains(err.Error(), tt.cause) {
					t.Errorf("got %v, want %q because of %q", err, tt.code, tt.cause)
				}
				c.Close()
				<-time.After(time.Second) // the server ends
			})
		})
	}
}
