package devpostgres

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strconv"
	"sync"
	"time"
)

const (
	loopback = "127.0.0.1"

	// Free ports are below the ranges of outgoing connections (from 32768 on Linux, from 49152 on
	// macOS). Otherwise a client that dials a killed server may get the server's port as its own,
	// which prevents the restart.
	lowestPort  = 20000
	highestPort = 32000

	probeTimeout = 2 * time.Second
)

// given are the ports that FindFreePort has returned. Their listeners may still have to come.
var given sync.Map

var errGiven = errors.New("this process had the port already")

// FindFreePort returns a port of 127.0.0.1 without a listener, which no outgoing connection gets. It
// returns each port once.
func FindFreePort(ctx context.Context) (int, error) {
	const tries = 100
	var err error
	for range tries {
		var n *big.Int
		if n, err = rand.Int(rand.Reader, big.NewInt(highestPort-lowestPort)); err != nil {
			break
		}
		port := lowestPort + int(n.Int64())
		if _, known := given.LoadOrStore(port, true); known {
			err = errGiven
			continue
		}
		var l net.Listener
		if l, err = new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(loopback, strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("finding a free port: %w", err)
}

// probeServer calls acceptsConnections with probeTimeout, because a server may be silent.
func probeServer(ctx context.Context, port int) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return acceptsConnections(ctx, port)
}

// acceptsConnections reports whether the server on port accepts connections. It begins a session as
// a client does. A ready server asks for authentication; one that starts, recovers or stops answers
// with an error. It waits until ctx's deadline.
func acceptsConnections(ctx context.Context, port int) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return false
		}
	}
	if _, err := conn.Write(buildStartupMessage()); err != nil {
		return false
	}
	const authentication = 'R'
	var kind [1]byte
	_, err = io.ReadFull(conn, kind[:])
	return err == nil && kind[0] == authentication
}

// buildStartupMessage returns the message that begins a session in version 3.0 of PostgreSQL's
// protocol. It has the length, the version, names and values with a zero byte each, and a final
// zero byte.
func buildStartupMessage() []byte {
	const protocol = 3 << 16
	m := binary.BigEndian.AppendUint32(make([]byte, 4), protocol)
	m = append(m, "user\x00"+superuser+"\x00database\x00postgres\x00\x00"...)
	binary.BigEndian.PutUint32(m, uint32(len(m))) //nolint:gosec // some 40 bytes
	return m
}
