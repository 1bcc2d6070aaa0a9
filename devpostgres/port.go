package devpostgres

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"math/big"
	"net"
	"strconv"
	"time"
)

const (
	loopback = "127.0.0.1"

	// Free ports are taken from below the ranges that systems hand out to outgoing connections (32768 up on Linux,
	// 49152 up on macOS). Otherwise, while a killed server is down, a client that dials it can be given that very
	// port as its own, and the server cannot come back.
	lowestPort  = 20000
	highestPort = 32000

	probeTimeout = 2 * time.Second
)

// freePort returns a port on which nobody listens just now.
func freePort(ctx context.Context) (int, error) {
	const tries = 100
	var err error
	for range tries {
		var n *big.Int
		if n, err = rand.Int(rand.Reader, big.NewInt(highestPort-lowestPort)); err != nil {
			break
		}
		port := lowestPort + int(n.Int64())
		var l net.Listener
		if l, err = new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(loopback, strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("looking for a free port: %w", err)
}

// answersSoon is answers for a server that may be silent: it gives up after probeTimeout.
func answersSoon(ctx context.Context, port int) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return answers(ctx, port)
}

// answers tells whether the server on port accepts connections. It begins a session as any client would: the server
// asks for authentication, or refuses with an error while it starts, recovers or stops. It waits for an answer until
// ctx's deadline.
func answers(ctx context.Context, port int) bool {
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
	if _, err := conn.Write(startupMessage()); err != nil {
		return false
	}
	const authentication = 'R'
	var kind [1]byte
	_, err = io.ReadFull(conn, kind[:])
	return err == nil && kind[0] == authentication
}

// startupMessage begins a session by version 3.0 of PostgreSQL's protocol: length, version, then names and values,
// each ended by a zero byte, and one more to end the list.
func startupMessage() []byte {
	const protocol = 3 << 16
	m := binary.BigEndian.AppendUint32(make([]byte, 4), protocol)
	m = append(m, "user\x00"+superuser+"\x00database\x00postgres\x00\x00"...)
	binary.BigEndian.PutUint32(m, uint32(len(m))) //nolint:gosec // some 40 bytes
	return m
}
