package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"checkoutlock/resource-locks/mutex"
)

// It runs against the address in its environment, such as http://127.0.0.1:9003.
func Example() {
	ctx := context.Background()
	ann := &mutex.Client{URL: os.Getenv("MUTEX_URL"), User: "ann"}
	bob := &mutex.Client{URL: os.Getenv("MUTEX_URL"), User: "bob"}

	if _, err := ann.Acquire(ctx, "draft-1"); err == nil {
		fmt.Println("ann edits")
	}
	_, err := bob.Acquire(ctx, "draft-1")
	var locked *mutex.LockedError
	switch {
	case errors.As(err, &locked):
		fmt.Println("bob reads, because it is in use by", locked.Holder)
	case errors.Is(err, mutex.ErrUnavailable):
		fmt.Println("bob edits without a lock, or not at all")
	}
	if err := ann.Release(ctx, "draft-1"); err == nil {
		fmt.Println("ann has left")
	}
}
