package locket_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"checkoutlock/resource-locks/internal/locket/locketpb"
)

func TestLock_Answers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 256)
	for _, tt := range []struct {
		name     string
		resource *locketpb.Resource
		ttl      int64
		code     codes.Code
		message  string
	}{
		{name: "no resource", ttl: 15, code: codes.InvalidArgument, message: "the request has no resource"},
		{
			name: "no type code", resource: &locketpb.Resource{Key: "k", Owner: "a", Type: "lock"}, ttl: 15,
			code: codes.NotFound, message: "invalid-type",
		},
		{
			name: "unknown type code", resource: &locketpb.Resource{Key: "k", Owner: "a", TypeCode: 9}, ttl: 15,
			code: codes.NotFound, message: "invalid-type",
		},
		{
			name: "type before TTL", resource: &locketpb.Resource{Key: "k"}, ttl: 0, code: codes.NotFound,
			message: "invalid-type",
		},
		{name: "TTL of zero", resource: resource("k", "a"), ttl: 0, code: codes.InvalidArgument, message: "invalid-ttl"},
		{name: "negative TTL", resource: resource("k", "a"), ttl: -1, code: codes.InvalidArgument, message: "invalid-ttl"},
		{name: "TTL before owner", resource: resource("k", ""), ttl: 0, code: codes.InvalidArgument, message: "invalid-ttl"},
		{name: "no owner", resource: resource("k", ""), ttl: 15, code: codes.InvalidArgument, message: "invalid-owner"},
		{
			name: "owner before lengths", resource: resource(long, ""), ttl: 15, code: codes.InvalidArgument,
			message: "invalid-owner",
		},
		{
			name: "long key", resource: resource(long, "a"), ttl: 15, code: codes.InvalidArgument,
			message: "the name has more than 255 characters",
		},
		{
			name: "long owner", resource: resource("k", long), ttl: 15, code: codes.InvalidArgument,
			message: "the owner has more than 255 characters",
		},
		{
			name:     "long value",
			resource: &locketpb.Resource{Key: "k", Owner: "a", Value: strings.Repeat("ä", 4097), TypeCode: 1}, ttl: 15,
			code: codes.InvalidArgument, message: "the value has more than 4096 characters",
		},
		{name: "NUL in the key", resource: resource("k\x00", "a"), ttl: 15, code: codes.InvalidArgument},
		{name: "NUL in the owner", resource: resource("k", "a\x00"), ttl: 15, code: codes.InvalidArgument},
		{
			name: "NUL in the value", resource: &locketpb.Resource{Key: "k", Owner: "a", Value: "\x00", TypeCode: 1}, ttl: 15,
			code: codes.InvalidArgument,
		},
		{
			name:     "longest texts",
			resource: &locketpb.Resource{Key: long[2:], Owner: long[2:], Value: strings.Repeat("ä", 4096), TypeCode: 2}, ttl: 15,
		},
		{name: "empty key", resource: resource("", "a"), ttl: 15},
		{name: "free key", resource: resource("k", "a"), ttl: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, c := start(t)
			_, err := c.Lock(t.Context(), lockFor(tt.ttl, tt.resource))
			wantStatus(t, err, tt.code, tt.message)
			stored := 0
			if tt.code == codes.OK {
				stored = 1
			}
			if n := s.countLocks(t); n != stored {
				t.Errorf("%d locks are stored, want %d", n, stored)
			}
		})
	}
}

func (s *harness) countLocks(t *testing.T) (n int) {
	t.Helper()
	counts, err := s.store.Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range counts {
		n += c.Locks
	}
	return n
}

func TestLock_OfTheOwner(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	mustLock(t, c, resource("k", "a"))
	changed := &locketpb.Resource{Key: "k", Owner: "a", Type: "ignored", TypeCode: locketpb.TypeCode_PRESENCE}
	if _, err := c.Lock(t.Context(), lockFor(60, changed)); err != nil {
		t.Fatal(err)
	}
	got, err := c.Fetch(t.Context(), &locketpb.FetchRequest{Key: "k"})
	want := &locketpb.Resource{Key: "k", Owner: "a", Type: "presence", TypeCode: locketpb.TypeCode_PRESENCE}
	if err != nil || !proto.Equal(got.GetResource(), want) {
		t.Errorf("got %v %v, want value and type replaced: %v", got, err, want)
	}
	s.store.Advance(30 * time.Second)
	wantOwner(t, c, "k", "a")
	if _, err := c.Lock(t.Context(), lockFor(1, resource("k", "a"))); err != nil {
		t.Fatal(err)
	}
	s.store.Advance(time.Second)
	wantOwner(t, c, "k", "") // a renewal may shorten the TTL
}

func TestLock_OfAnotherOwner(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	mustLock(t, c, resource("k", "a"))
	s.store.Advance(5 * time.Second)
	for _, r := range []*locketpb.Resource{
		resource("k", "b"), {Key: "k", Owner: "b", TypeCode: locketpb.TypeCode_PRESENCE},
	} {
		_, err := c.Lock(t.Context(), lockFor(100, r))
		wantStatus(t, err, codes.AlreadyExists, "lock-collision")
	}
	got, err := c.Fetch(t.Context(), &locketpb.FetchRequest{Key: "k"})
	want := &locketpb.Resource{Key: "k", Owner: "a", Value: "v", Type: "lock", TypeCode: locketpb.TypeCode_LOCK}
	if err != nil || !proto.Equal(got.GetResource(), want) {
		t.Errorf("got %v %v, want the lock unchanged: %v", got, err, want)
	}
	s.store.Advance(10 * time.Second)
	wantOwner(t, c, "k", "") // nor did the refused call lengthen it
}

func TestLock_ComparesExactly(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	for i, key := range []string{"", " ", "k", "K", "k ", "ключ", "é", "e\u0301"} {
		mustLock(t, c, resource(key, fmt.Sprint(i)))
	}
	_, err := c.Lock(t.Context(), lockFor(15, resource("k", "2 ")))
	wantStatus(t, err, codes.AlreadyExists, "lock-collision")
}

func TestLock_WithAHugeTTL(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	for key, ttl := range map[string]int64{"a": math.MaxInt64, "b": 1 << 62, "c": math.MaxInt64 / int64(time.Second)} {
		if _, err := c.Lock(t.Context(), lockFor(ttl, resource(key, "a"))); err != nil {
			t.Fatal(err)
		}
	}
	s.store.Advance(50 * 365 * 24 * time.Hour)
	for _, key := range []string{"a", "b", "c"} {
		wantOwner(t, c, key, "a")
	}
}

func TestLock_HasOneWinner(t *testing.T) {
	t.Parallel()
	const owners = 32
	s, _ := start(t)
	begin := make(chan struct{})
	answers := make(chan error, owners)
	var ready sync.WaitGroup
	for i := range owners {
		c := s.client(t)
		ready.Add(1)
		go func() {
			_, _ = c.Fetch(t.Context(), &locketpb.FetchRequest{Key: "warm-up"})
			ready.Done()
			<-begin
			_, err := c.Lock(t.Context(), lockFor(15, resource("k", fmt.Sprint("owner-", i))))
			answers <- err
		}()
	}
	ready.Wait()
	close(begin)
	won := 0
	for range owners {
		err := <-answers
		if err == nil {
			won++
		} else if status.Code(err) != codes.AlreadyExists || status.Convert(err).Message() != "lock-collision" {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d owners hold the lock, want 1", won)
	}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		resource *locketpb.Resource
		code     codes.Code
		owner    string // afterwards
	}{
		{name: "no resource", code: codes.InvalidArgument, owner: "a"},
		{name: "the owner", resource: resource("k", "a")},
		{name: "another value and no type", resource: &locketpb.Resource{Key: "k", Owner: "a", Value: "other"}},
		{name: "an unknown type", resource: &locketpb.Resource{Key: "k", Owner: "a", TypeCode: 9}},
		{name: "another owner", resource: resource("k", "b"), code: codes.AlreadyExists, owner: "a"},
		{name: "no owner", resource: resource("k", ""), code: codes.AlreadyExists, owner: "a"},
		{name: "a free key", resource: resource("other", "a"), owner: "a"},
		{name: "a free key without an owner", resource: resource("other", ""), owner: "a"},
		{name: "NUL in the key", resource: resource("\x00", "a"), code: codes.InvalidArgument, owner: "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, c := start(t)
			mustLock(t, c, resource("k", "a"))
			for range 2 {
				_, err := c.Release(t.Context(), &locketpb.ReleaseRequest{Resource: tt.resource})
				message := ""
				if tt.code == codes.AlreadyExists {
					message = "lock-collision"
				}
				wantStatus(t, err, tt.code, message)
			}
			wantOwner(t, c, "k", tt.owner)
		})
	}
}

func TestRelease_LateOneLeavesTheSuccessor(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	mustLock(t, c, resource("k", "a"))
	s.store.Advance(15 * time.Second)
	mustLock(t, c, resource("k", "b"))
	_, err := c.Release(t.Context(), &locketpb.ReleaseRequest{Resource: resource("k", "a")})
	wantStatus(t, err, codes.AlreadyExists, "lock-collision")
	wantOwner(t, c, "k", "b")
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	mustLock(t, c, resource("k", "a"))
	s.store.Advance(5 * time.Second) // a busy host may stand still before the next call
	wantOwner(t, c, "k", "a")
	s.store.Advance(10 * time.Second)
	wantOwner(t, c, "k", "")
	if all := fetchAll(t, c, locketpb.TypeCode_LOCK); len(all) != 0 {
		t.Errorf("the list has %v", all)
	}
	mustLock(t, c, resource("k", "b"))
	_, err := c.Lock(t.Context(), lockFor(15, resource("k", "a")))
	wantStatus(t, err, codes.AlreadyExists, "lock-collision")
	// The deadline of a released grant does not end its successor.
	if _, err := c.Release(t.Context(), &locketpb.ReleaseRequest{Resource: resource("k", "b")}); err != nil {
		t.Fatal(err)
	}
	s.store.Advance(10 * time.Second)
	mustLock(t, c, resource("k", "a"))
	s.store.Advance(5 * time.Second)
	wantOwner(t, c, "k", "a")
}

func fetchAll(t *testing.T, c locketpb.LocketClient, code locketpb.TypeCode) []*locketpb.Resource {
	t.Helper()
	all, err := c.FetchAll(t.Context(), &locketpb.FetchAllRequest{Type: "ignored", TypeCode: code})
	if err != nil {
		t.Fatal(err)
	}
	return all.GetResources()
}

func TestFetchAll(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	if all := fetchAll(t, c, locketpb.TypeCode_LOCK); len(all) != 0 {
		t.Errorf("got %v of an empty store", all)
	}
	mustLock(t, c, resource("a", "o"))
	mustLock(t, c, resource("b", "o"))
	mustLock(t, c, &locketpb.Resource{Key: "cell", Owner: "o", Value: "{}", TypeCode: locketpb.TypeCode_PRESENCE})
	for code, want := range map[locketpb.TypeCode][]*locketpb.Resource{
		locketpb.TypeCode_LOCK: {
			{Key: "a", Owner: "o", Value: "v", Type: "lock", TypeCode: locketpb.TypeCode_LOCK},
			{Key: "b", Owner: "o", Value: "v", Type: "lock", TypeCode: locketpb.TypeCode_LOCK},
		},
		locketpb.TypeCode_PRESENCE: {
			{Key: "cell", Owner: "o", Value: "{}", Type: "presence", TypeCode: locketpb.TypeCode_PRESENCE},
		},
	} {
		got := &locketpb.FetchAllResponse{Resources: fetchAll(t, c, code)}
		if !proto.Equal(got, &locketpb.FetchAllResponse{Resources: want}) {
			t.Errorf("%v: got %v, want %v", code, got, want)
		}
	}
	for _, code := range []locketpb.TypeCode{locketpb.TypeCode_UNKNOWN, 9, -1} {
		_, err := c.FetchAll(t.Context(), &locketpb.FetchAllRequest{Type: "lock", TypeCode: code})
		wantStatus(t, err, codes.NotFound, "invalid-type")
	}
}

func TestFetchAll_RefusesWhatNoClientTakes(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	mustLock(t, c, &locketpb.Resource{
		Key: "a", Owner: "o", Value: strings.Repeat("v", 1000), TypeCode: locketpb.TypeCode_LOCK,
	})
	if all := fetchAll(t, c, locketpb.TypeCode_LOCK); len(all) != 1 {
		t.Errorf("got %v, want the lock", all)
	}
	s.BoundLists(1000)
	_, err := c.FetchAll(t.Context(), &locketpb.FetchAllRequest{TypeCode: locketpb.TypeCode_LOCK})
	wantStatus(t, err, codes.ResourceExhausted, "the resources of type lock have more than 1000 bytes")
}
