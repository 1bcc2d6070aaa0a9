package resourcelocks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// locketConns has one connection for each address.
var locketConns connections

type connections struct {
	mu   sync.Mutex
	open map[string]*grpc.ClientConn
}

func (c *connections) to(address string) (*grpc.ClientConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn := c.open[address]; conn != nil {
		return conn, nil
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	if c.open == nil {
		c.open = map[string]*grpc.ClientConn{}
	}
	c.open[address] = conn
	return conn, nil
}

func (c *connections) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, conn := range c.open {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

// newMessage returns a message of Locket. Its generated type is internal to the service, and
// is registered by its name.
func newMessage(name, text string) (proto.Message, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("models." + name))
	if err != nil {
		return nil, err
	}
	message := kind.New().Interface()
	return message, protojson.Unmarshal([]byte(text), message)
}

// callLocket calls a method with a request in JSON.
func callLocket(ctx context.Context, at addresses, method, request string) error {
	sent, err := newMessage(method+"Request", request)
	if err != nil {
		return err
	}
	got, err := newMessage(method+"Response", "{}")
	if err != nil {
		return err
	}
	conn, err := locketConns.to(at["locket"])
	if err != nil {
		return err
	}
	return conn.Invoke(ctx, "/models.Locket/"+method, sent, got)
}

func acquireLocket(ctx context.Context, at addresses, key, owner string) (*hold, error) {
	resource := fmt.Sprintf(`"resource": {"key": %q, "owner": %q, "typeCode": "LOCK"}`, key, owner)
	sent := time.Now()
	err := callLocket(ctx, at, "Lock", fmt.Sprintf(`{%s, "ttlInSeconds": %d}`, resource, lockTTL/time.Second))
	switch status.Code(err) {
	case codes.OK:
	case codes.AlreadyExists:
		return nil, errRefused
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return nil, errAnswer(errAway, "%v", err)
	default:
		return nil, err
	}
	return holdUntilTTL(sent, func(ctx context.Context) error { return callLocket(ctx, at, "Release", "{"+resource+"}") }),
		nil
}
