package main

import (
	"fmt"
	"io"
	"strings"

	"checkoutlock/integration-tests/stack"
)

// printLockExamples prints the addresses of resource-locks, and one command to paste for
// each protocol.
func printLockExamples(out io.Writer, locks *stack.ResourceLocks) {
	host := func(front string) string { return strings.TrimPrefix(locks.URL(front), "http://") }
	fmt.Fprintf(out, `
Locks for other things:

  Locket     %[1]s
    grpcurl -plaintext -proto resource-locks/internal/locket/locketpb/locket.proto \
      -d '{"resource":{"key":"bbs","owner":"one","type_code":"LOCK"},"ttl_in_seconds":60}' %[1]s models.Locket/Lock

  Locktopus  ws://%[2]s/v1
    npx --yes wscat -c 'ws://%[2]s/v1?namespace=shelves' -w 60 \
      -x '{"action":"lock","resources":[{"type":"write","path":["floor 1"]}]}'

  Sunbird    %[3]s
    curl -H 'Content-Type: application/json' -H 'X-Authenticated-Userid: ann' -H 'X-Device-Id: desk' %[3]s/v1/lock/create \
      -d '{"request":{"resourceId":"do_1","resourceType":"Content","resourceInfo":"{}","createdBy":"ann","creatorInfo":"{\"name\":\"Ann\"}"}}'

  Mutex      %[4]s
    curl -i -X POST -H 'X-User-Id: 1' %[4]s/api/lock/draft-1/
`, host("locket"), host("locktopus"), locks.URL("sunbird"), locks.URL("mutex"))
}
