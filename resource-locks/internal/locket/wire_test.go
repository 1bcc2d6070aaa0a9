package locket_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/resource-locks/internal/locket/locketpb"
)

// rawCodec sends and receives bytes as they are.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (rawCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}

// sendRaw calls a method with a body that no client library would make.
func sendRaw(t *testing.T, conn *grpc.ClientConn, method string, body []byte) error {
	t.Helper()
	var answer []byte
	return conn.Invoke(t.Context(), "/models.Locket/"+method, &body, &answer, grpc.ForceCodec(rawCodec{}))
}

func marshal(t *testing.T, m proto.Message) []byte {
	t.Helper()
	body, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestWire_OddBodies(t *testing.T) {
	t.Parallel()
	// Field 1 of a LockRequest is a Resource, whose field 2 is the owner.
	badText := []byte{0x0a, 0x09, 0x0a, 0x01, 'k', 0x12, 0x02, 0xff, 0xfe, 0x28, 0x01, 0x10, 0x0f}
	unknownField := append(marshal(t, lockFor(15, resource("k", "a"))), 0x9a, 0x06, 0x01, 'x')
	for _, tt := range []struct {
		name   string
		method string
		body   []byte
		code   codes.Code
		owner  string
	}{
		{name: "no protobuf", method: "Lock", body: []byte{0xff, 0xff, 0xff}, code: codes.Internal},
		{name: "invalid UTF-8", method: "Lock", body: badText, code: codes.Internal},
		{name: "an unknown field", method: "Lock", body: unknownField, owner: "a"},
		{name: "an unknown method", method: "Steal", body: nil, code: codes.Unimplemented},
		{name: "above 4 MB", method: "Lock", body: make([]byte, 4<<20+1), code: codes.ResourceExhausted},
		{name: "an empty body", method: "Lock", code: codes.InvalidArgument},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := startHarness(t, plaintext())
			conn := s.dial(t, insecure.NewCredentials())
			wantStatus(t, sendRaw(t, conn, tt.method, tt.body), tt.code, "")
			c := locketpb.NewLocketClient(conn) // on the same connection
			wantOwner(t, c, "k", tt.owner)
			if n := s.countLocks(t); tt.owner == "" && n != 0 {
				t.Errorf("%d locks are stored", n)
			}
		})
	}
}

func TestWire_NumbersAndNames(t *testing.T) {
	t.Parallel()
	file := locketpb.File_locket_proto
	if got := file.Services().Get(0).FullName(); got != "models.Locket" {
		t.Errorf("the service is %s", got)
	}
	numbers := map[protoreflect.Name]map[protoreflect.Name]protoreflect.FieldNumber{
		"Resource":         {"key": 1, "owner": 2, "value": 3, "type": 4, "type_code": 5},
		"LockRequest":      {"resource": 1, "ttl_in_seconds": 2},
		"LockResponse":     {},
		"ReleaseRequest":   {"resource": 1},
		"ReleaseResponse":  {},
		"FetchRequest":     {"key": 1},
		"FetchResponse":    {"resource": 1},
		"FetchAllRequest":  {"type": 1, "type_code": 2},
		"FetchAllResponse": {"resources": 1},
	}
	if n := file.Messages().Len(); n != len(numbers) {
		t.Errorf("there are %d messages, want %d", n, len(numbers))
	}
	for message, fields := range numbers {
		d := file.Messages().ByName(message)
		if d.Fields().Len() != len(fields) {
			t.Errorf("%s has %d fields, want %d", message, d.Fields().Len(), len(fields))
		}
		for name, number := range fields {
			if f := d.Fields().ByName(name); f == nil || f.Number() != number {
				t.Errorf("%s.%s is not number %d", message, name, number)
			}
		}
	}
	values := file.Enums().ByName("TypeCode").Values()
	for number, name := range []protoreflect.Name{"UNKNOWN", "LOCK", "PRESENCE"} {
		if v := values.ByNumber(protoreflect.EnumNumber(number)); v.Name() != name {
			t.Errorf("TypeCode %d is %s, want %s", number, v.Name(), name)
		}
	}
}

// Published clients ping every 10 s; gRPC's default policy would end the connection at the
// third ping.
func TestPings_AreAllowed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		pause time.Duration
		ended bool
	}{
		{name: "every 6 s", pause: 6 * time.Second},
		{name: "every second", pause: time.Second, ended: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ln := bufconn.Listen(1 << 16)
				s := newHarness(plaintext(), enginetest.NewStore())
				s.ListenOn(ln)
				served := make(chan error, 1)
				go func() { served <- s.Serve(t.Context()) }()
				conn, err := ln.DialContext(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if ended := pingWithoutACall(t, conn, tt.pause, 10); ended != tt.ended {
					t.Errorf("the server ended the connection: %v, want %v", ended, tt.ended)
				}
				_ = conn.Close()
				if err := s.Drain(context.Background()); err != nil {
					t.Error(err)
				}
				if err := <-served; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// pingWithoutACall sends n pings and reports whether the server sends GOAWAY meanwhile.
func pingWithoutACall(t *testing.T, conn net.Conn, pause time.Duration, n int) bool {
	t.Helper()
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	acks, ended := make(chan struct{}, n), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			frame, err := framer.ReadFrame()
			if _, away := frame.(*http2.GoAwayFrame); away || err != nil {
				return
			}
			if ping, is := frame.(*http2.PingFrame); is && ping.IsAck() {
				acks <- struct{}{}
			}
		}
	}()
	for range n {
		<-time.After(pause) // in the bubble's time
		if err := framer.WritePing(false, [8]byte{1}); errors.Is(err, io.ErrClosedPipe) {
			return true
		}
		select {
		case <-ended:
			return true
		case <-acks:
		}
	}
	return false
}
