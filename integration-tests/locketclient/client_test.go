// Package locketclient runs the published client and runners of Locket against two
// instances. TestPublishedClient_OfLocket starts them and this test.
package locketclient

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"code.cloudfoundry.org/clock"
	"code.cloudfoundry.org/lager/v3"
	"code.cloudfoundry.org/locket"
	"code.cloudfoundry.org/locket/jointlock"
	"code.cloudfoundry.org/locket/lock"
	"code.cloudfoundry.org/locket/models"
	"github.com/tedsuo/ifrit"
	"github.com/tedsuo/ifrit/grouper"
	"google.golang.org/grpc/status"
)

const (
	ttl   = 5               // seconds
	retry = 2 * time.Second // a runner also ends if one call takes longer
	wait  = 20 * time.Second
)

// Instances that the environment names.
const (
	first = iota
	second
)

// connect returns a client of an instance.
func connect(t *testing.T, instance int) models.LocketClient {
	t.Helper()
	addresses := strings.Fields(os.Getenv("LOCKET_ADDRESSES"))
	if len(addresses) == 0 {
		t.Skip("LOCKET_ADDRESSES names no instances")
	}
	client, err := locket.NewClient(lager.NewLogger("test"), locket.ClientLocketConfig{
		LocketAddress: addresses[instance], LocketCACertFile: os.Getenv("LOCKET_CA"),
		LocketClientCertFile: os.Getenv("LOCKET_CERT"), LocketClientKeyFile: os.Getenv("LOCKET_KEY"),
		LocketClientKeepAliveTime: 10, LocketClientKeepAliveTimeout: 22,
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func resource(key, owner string, code models.TypeCode) *models.Resource {
	return &models.Resource{
		Key: key, Owner: owner, Value: "v", TypeCode: code, Type: models.GetType(&models.Resource{TypeCode: code}),
	}
}

func wantOwner(t *testing.T, c models.LocketClient, key, owner string) {
	t.Helper()
	got, err := c.Fetch(context.Background(), &models.FetchRequest{Key: key})
	if owner == "" {
		if status.Code(err) != status.Code(models.ErrResourceNotFound) {
			t.Errorf("got %v %v, want a free key", got, err)
		}
	} else if err != nil || got.Resource.Owner != owner {
		t.Errorf("got %v %v, want the owner %q", got, err, owner)
	}
}

func lockRunner(c models.LocketClient, r *models.Resource) ifrit.Runner {
	return lock.NewLockRunner(lager.NewLogger("test"), c, r, ttl, clock.NewClock(), retry)
}

func presenceRunner(c models.LocketClient, r *models.Resource) ifrit.Runner {
	return lock.NewPresenceRunner(lager.NewLogger("test"), c, r, ttl, clock.NewClock(), retry)
}

func wantReady(t *testing.T, p ifrit.Process) {
	t.Helper()
	select {
	case <-p.Ready():
	case err := <-p.Wait():
		t.Fatalf("the runner ended: %v", err)
	case <-time.After(wait):
		t.Fatal("the runner is not ready")
	}
}

// stop signals a runner and returns its error.
func stop(t *testing.T, p ifrit.Process) error {
	t.Helper()
	p.Signal(os.Interrupt)
	return wantEnd(t, p)
}

func wantEnd(t *testing.T, p ifrit.Process) error {
	t.Helper()
	select {
	case err := <-p.Wait():
		return err
	case <-time.After(wait):
		t.Fatal("the runner does not end")
		return nil
	}
}

func TestClient_Answers(t *testing.T) {
	t.Parallel()
	c, ctx := connect(t, first), context.Background()
	r := resource("client", "a", models.LOCK)
	if _, err := c.Lock(ctx, &models.LockRequest{Resource: r, TtlInSeconds: ttl}); err != nil {
		t.Fatal(err)
	}
	_, err := c.Lock(ctx, &models.LockRequest{Resource: resource("client", "b", models.LOCK), TtlInSeconds: ttl})
	if err == nil || err.Error() != models.ErrLockCollision.Error() {
		t.Errorf("got %v, want %v", err, models.ErrLockCollision)
	}
	all, err := c.FetchAll(ctx, &models.FetchAllRequest{TypeCode: models.LOCK})
	found := false
	for _, one := range all.GetResources() {
		found = found || one.Equal(r)
	}
	if err != nil || !found {
		t.Errorf("got %v %v, want %v among them", all, err, r)
	}
	if _, err := c.Release(ctx, &models.ReleaseRequest{Resource: r}); err != nil {
		t.Error(err)
	}
	wantOwner(t, c, "client", "")
	for want, request := range map[error]*models.LockRequest{
		models.ErrInvalidTTL:   {Resource: r},
		models.ErrInvalidOwner: {Resource: resource("client", "", models.LOCK), TtlInSeconds: ttl},
		models.ErrInvalidType:  {Resource: resource("client", "a", models.UNKNOWN), TtlInSeconds: ttl},
	} {
		if _, err := c.Lock(ctx, request); err == nil || err.Error() != want.Error() {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

func TestLockRunner_HandsOver(t *testing.T) {
	t.Parallel()
	c := connect(t, first)
	leader := ifrit.Background(lockRunner(c, resource("leader", "first", models.LOCK)))
	wantReady(t, leader)
	follower := ifrit.Background(lockRunner(connect(t, second), resource("leader", "second", models.LOCK)))
	select {
	case <-follower.Ready():
		t.Error("two runners lead")
	case <-time.After((ttl + 1) * time.Second): // the first one renews
	}
	wantOwner(t, c, "leader", "first")
	if err := stop(t, leader); err != nil {
		t.Error(err)
	}
	wantReady(t, follower)
	wantOwner(t, c, "leader", "second")
	if err := stop(t, follower); err != nil {
		t.Error(err)
	}
	wantOwner(t, c, "leader", "")
}

// stealKey takes a key from its owner. The runner's next renewal collides.
func stealKey(t *testing.T, c models.LocketClient, from *models.Resource) *models.Resource {
	t.Helper()
	thief := resource(from.Key, "thief", models.LOCK)
	for range 1000 {
		if _, err := c.Release(context.Background(), &models.ReleaseRequest{Resource: from}); err != nil {
			t.Fatal(err)
		}
		_, err := c.Lock(context.Background(), &models.LockRequest{Resource: thief, TtlInSeconds: ttl})
		if err == nil {
			return thief
		}
	}
	t.Fatal("the owner renews in between each time")
	return nil
}

func TestLockRunner_EndsWhenItLosesTheLock(t *testing.T) {
	t.Parallel()
	c, r := connect(t, first), resource("lost", "a", models.LOCK)
	runner := ifrit.Background(lockRunner(c, r))
	wantReady(t, runner)
	stealKey(t, connect(t, second), r)
	if err := wantEnd(t, runner); err == nil {
		t.Error("the runner ended without an error")
	}
}

func TestPresenceRunner_TakesTheKeyAgain(t *testing.T) {
	t.Parallel()
	c, r := connect(t, first), resource("cell", "a", models.PRESENCE)
	runner := ifrit.Background(presenceRunner(c, r))
	wantReady(t, runner)
	stealKey(t, connect(t, second), r)
	end := time.Now().Add(wait)
	for owner := ""; owner != "a"; <-time.After(100 * time.Millisecond) {
		if got, err := c.Fetch(context.Background(), &models.FetchRequest{Key: "cell"}); err == nil {
			owner = got.Resource.Owner
		}
		if time.Now().After(end) {
			t.Fatal("the runner did not take the key again")
		}
	}
	if err := stop(t, runner); err != nil {
		t.Error(err)
	}
}

func TestJointLock_FreesAllWithoutOne(t *testing.T) {
	t.Parallel()
	c := connect(t, first)
	other := ifrit.Background(lockRunner(connect(t, second), resource("joint-2", "other", models.LOCK)))
	wantReady(t, other)
	joint := ifrit.Background(jointlock.NewJointLock(clock.NewClock(), time.Second,
		grouper.Member{Name: "1", Runner: lockRunner(c, resource("joint-1", "a", models.LOCK))},
		grouper.Member{Name: "2", Runner: lockRunner(c, resource("joint-2", "a", models.LOCK))},
	))
	if err := wantEnd(t, joint); err == nil {
		t.Error("the joint lock ended without an error")
	}
	wantOwner(t, c, "joint-1", "")
	wantOwner(t, c, "joint-2", "other")
	if err := stop(t, other); err != nil {
		t.Error(err)
	}
}
