package locket

import (
	"net"

	"google.golang.org/grpc/credentials/insecure"
)

// ListenOn listens without TLS on a listener of the test.
func (f *Front) ListenOn(ln net.Listener) { f.listenOn(ln, insecure.NewCredentials()) }
