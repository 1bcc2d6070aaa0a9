package locktopus

import (
	"bufio"
	"encoding/binary"
	"net"
	"net/http"

	"golang.org/x/time/rate"
)

// Limits of a client's frames: messages, their continuations, pings, pongs and closes.
const (
	frameRate  = 500 // per second
	frameBurst = 1000
)

var errFlood = errProtocol("too many frames: allowed are %d per second, and %d at once", frameRate, frameBurst)

// countedConn counts the frames of a web socket's client as it reads their bytes. The reader
// above it passes over continuations, of which a message may have any number.
type countedConn struct {
	net.Conn

	allowed *rate.Limiter
	flooded bool   // an earlier read has failed for it
	payload uint64 // bytes that are left of the last frame
	header  []byte // of the next frame, as far as it was read
	space   [14]byte
}

func newCountedConn(conn net.Conn) *countedConn {
	c := &countedConn{Conn: conn, allowed: rate.NewLimiter(frameRate, frameBurst)}
	c.header = c.space[:0]
	return c
}

// Read implements io.Reader. With too many frames, one call returns errFlood. Later ones
// count no longer, so that the connection can be closed in order.
func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.flooded && !c.allow(b[:n]) {
		c.flooded = true
		return 0, errFlood
	}
	return n, err
}

// allow reports whether the client may begin all frames that begin in b.
func (c *countedConn) allow(b []byte) bool {
	for len(b) > 0 {
		if c.payload > 0 {
			n := min(c.payload, uint64(len(b)))
			c.payload, b = c.payload-n, b[n:]
			continue
		}
		c.header, b = append(c.header, b[0]), b[1:]
		if payload, complete := parseHeader(c.header); complete {
			c.payload, c.header = payload, c.space[:0]
			if !c.allowed.Allow() {
				return false
			}
		}
	}
	return true
}

// parseHeader returns the length of a frame's payload, once its header is complete: RFC 6455,
// section 5.2.
func parseHeader(h []byte) (payload uint64, complete bool) {
	const fixed, masked, length, mask = 2, 0x80, 0x7f, 4
	if len(h) < fixed {
		return 0, false
	}
	size := fixed
	switch payload = uint64(h[1] & length); payload {
	case length - 1:
		size += 2
	case length:
		size += 8
	}
	if h[1]&masked != 0 {
		size += mask
	}
	if len(h) < size {
		return 0, false
	}
	switch payload {
	case length - 1:
		payload = uint64(binary.BigEndian.Uint16(h[fixed:]))
	case length:
		payload = binary.BigEndian.Uint64(h[fixed:])
	}
	return payload, true
}

// countingWriter is an answer to an upgrade whose connection counts frames.
type countingWriter struct{ http.ResponseWriter }

// Hijack implements http.Hijacker.
func (w countingWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	return newCountedConn(conn), buffers, nil
}
