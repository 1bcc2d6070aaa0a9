package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// locketTTL is the time to live that the published runners ask for, in seconds.
const locketTTL = 15

// locketClient calls Locket with as little work as possible, on a connection of its own
// with the keep-alive of the published client.
type locketClient struct{ conn *grpc.ClientConn }

func dialLocket(addr string, transport *tls.Config) (*locketClient, error) {
	conn, err := grpc.NewClient(
		addr, grpc.WithTransportCredentials(credentials.NewTLS(transport)), grpc.WithDefaultCallOptions(grpc.ForceCodec(plainBytes{})),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 22 * time.Second, PermitWithoutStream: true}),
	)
	return &locketClient{conn}, err
}

// dialLockets returns n clients, each with a connection.
func dialLockets(addr string, transport *tls.Config, n int) ([]*locketClient, error) {
	clients := make([]*locketClient, n)
	for i := range clients {
		var err error
		if clients[i], err = dialLocket(addr, transport); err != nil {
			return nil, err
		}
	}
	return clients, nil
}

func closeLockets(clients []*locketClient) {
	for _, c := range clients {
		_ = c.conn.Close() // no call is under way
	}
}

// lock takes a key or renews it. It reports whether the owner has it.
func (c *locketClient) lock(ctx context.Context, key, owner string, seconds uint64) (bool, error) {
	request := protowire.AppendTag(nil, 1, protowire.BytesType)
	request = protowire.AppendBytes(request, encodeResource(key, owner))
	request = protowire.AppendTag(request, 2, protowire.VarintType)
	request = protowire.AppendVarint(request, seconds)
	err := c.conn.Invoke(ctx, "/models.Locket/Lock", request, nil)
	if status.Code(err) == codes.AlreadyExists {
		return false, nil
	}
	return err == nil, err
}

func (c *locketClient) release(ctx context.Context, key, owner string) error {
	request := protowire.AppendTag(nil, 1, protowire.BytesType)
	return c.conn.Invoke(ctx, "/models.Locket/Release", protowire.AppendBytes(request, encodeResource(key, owner)), nil)
}

// encodeResource returns a models.Resource of type LOCK.
func encodeResource(key, owner string) []byte {
	var resource []byte
	for i, text := range []string{key, owner, "value"} {
		resource = protowire.AppendTag(resource, protowire.Number(i+1), protowire.BytesType)
		resource = protowire.AppendString(resource, text)
	}
	resource = protowire.AppendTag(resource, 5, protowire.VarintType)
	return protowire.AppendVarint(resource, 1)
}

// plainBytes sends and receives encoded messages as they are.
type plainBytes struct{}

// Marshal implements encoding.Codec.
func (plainBytes) Marshal(v any) ([]byte, error) { return v.([]byte), nil }

// Unmarshal implements encoding.Codec. The client passes nil, because answers have no fields.
func (plainBytes) Unmarshal(message []byte, v any) error {
	if to, ok := v.(*[]byte); ok {
		*to = bytes.Clone(message) // gRPC uses its buffer anew
	}
	return nil
}

// Name implements encoding.Codec. It is the content type.
func (plainBytes) Name() string { return "proto" }
