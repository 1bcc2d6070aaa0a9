package locktopus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"testing/iotest"
)

// readerConn is a connection whose client has sent what the reader has.
type readerConn struct {
	net.Conn
	io.Reader
}

func (c readerConn) Read(b []byte) (int, error) { return c.Reader.Read(b) }

// appendFrame appends a masked frame with a payload of zeros.
func appendFrame(b []byte, payload int) []byte {
	const masked = 0x80
	b = append(b, final)
	switch {
	case payload < 126:
		b = append(b, masked|byte(payload))
	case payload <= 0xffff:
		b = binary.BigEndian.AppendUint16(append(b, masked|126), uint16(payload))
	default:
		b = binary.BigEndian.AppendUint64(append(b, masked|127), uint64(payload))
	}
	return append(b, make([]byte, 4+payload)...)
}

func TestCountedConn(t *testing.T) {
	t.Parallel()
	payloads := []int{0, 1, 125, 126, 127, 65535, 65536, 0, 7}
	var all []byte
	for _, n := range payloads {
		all = appendFrame(all, n)
	}
	for name, reader := range map[string]func(io.Reader) io.Reader{
		"in one piece":    func(r io.Reader) io.Reader { return r },
		"byte after byte": iotest.OneByteReader,
		"in halves":       iotest.HalfReader,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCountedConn(readerConn{Reader: reader(bytes.NewReader(all))})
			c.allowed.SetLimit(0)
			c.allowed.SetBurst(len(payloads))
			got, err := io.ReadAll(c)
			if err != nil || !bytes.Equal(got, all) {
				t.Errorf("read %d bytes, %v, want all %d", len(got), err, len(all))
			}
			if left := c.allowed.Tokens(); left != 0 {
				t.Errorf("%v more frames are allowed, want none after %d", left, len(payloads))
			}
		})
	}
}

func TestCountedConn_FailsOnce(t *testing.T) {
	t.Parallel()
	flood := slices.Repeat(appendFrame(nil, 0), 2*frameBurst)
	c := newCountedConn(readerConn{Reader: bytes.NewReader(flood)})
	if _, err := io.ReadAll(c); !errors.Is(err, errFlood) {
		t.Errorf("got %v, want %v", err, errFlood)
	}
	if _, err := io.ReadAll(c); err != nil {
		t.Errorf("got %v after the flood, want the rest", err)
	}
}

// However a client's bytes arrive, its frames are counted alike.
func FuzzCountedConn(f *testing.F) {
	for _, n := range []int{0, 1, 125, 126, 65535, 65536} {
		f.Add(appendFrame(appendFrame(nil, n), 3), 1)
	}
	f.Add([]byte{final, 127, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3}, 2)
	f.Fuzz(func(t *testing.T, sent []byte, part int) {
		count := func(r io.Reader) float64 {
			c := newCountedConn(readerConn{Reader: r})
			c.allowed.SetLimit(0)
			c.allowed.SetBurst(len(sent) + 1)
			if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, sent) {
				t.Fatalf("read %d of %d bytes: %v", len(got), len(sent), err)
			}
			return float64(len(sent)+1) - c.allowed.Tokens()
		}
		first := int(uint(part) % uint(len(sent)+1))
		whole := count(bytes.NewReader(sent))
		if parts := count(io.MultiReader(bytes.NewReader(sent[:first]), bytes.NewReader(sent[first:]))); parts != whole {
			t.Errorf("%d bytes have %v frames in one piece, and %v in two from %d on", len(sent), whole, parts, first)
		}
		if single := count(iotest.OneByteReader(bytes.NewReader(sent))); single != whole {
			t.Errorf("%d bytes have %v frames in one piece, and %v one by one", len(sent), whole, single)
		}
	})
}
