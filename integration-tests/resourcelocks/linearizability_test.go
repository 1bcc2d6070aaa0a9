package resourcelocks

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/lockhistory"
)

const (
	lostPercent   = 6 // of requests, and of answers
	historyKeys   = 3
	clientsPerKey = 3
)

// One lock at a time explains what all clients of a resource see, while instances are killed.
func TestLocks_AreLinearizable(t *testing.T) {
	t.Parallel()
	seeds, cycles := 1, 25
	if os.Getenv("TORTURE") != "" {
		seeds, cycles = 20, 50
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			runHistory(t, uint64(seed), int32(cycles*historyKeys*clientsPerKey))
		})
	}
}

func runHistory(t *testing.T, seed uint64, total int32) {
	t.Helper()
	server, session := createDatabase(t), "history-"+uuid.NewString()
	database := lockhistory.NameSessions(t, server, session)
	first, second, third := startChild(t, database), startChild(t, database), startChild(t, database)
	var at atomic.Pointer[[]addresses]
	at.Store(&[]addresses{first.addresses, second.addresses})
	h := lockhistory.New(lockTTL)
	loss := lockhistory.NewLoss(seed, lostPercent)
	var cycles atomic.Int32
	var clients sync.WaitGroup
	for number := range historyKeys * clientsPerKey {
		c := &historyClient{
			t: t, history: h, key: fmt.Sprint("key-", number%historyKeys), number: number, at: &at,
			http: &http.Client{Transport: loss, Timeout: patience}, rng: rand.New(rand.NewPCG(seed, uint64(number))),
		}
		clients.Go(func() {
			for n := cycles.Add(1); n <= total; n = cycles.Add(1) {
				if n%lockhistory.CyclesPerEnd == 0 {
					if err := lockhistory.EndSessions(t.Context(), server, session); err != nil {
						t.Error(err)
					}
				}
				c.useLock()
			}
		})
	}
	for i, killed := range []*child{first, second} {
		for done := cycles.Load(); done <= total*int32(i+1)/3; done = cycles.Load() {
			waitUntil(t, "the clients go on", func() bool { return cycles.Load() > done })
		}
		killed.kill()
		at.Store(&[][]addresses{{second.addresses, third.addresses}, {third.addresses}}[i])
	}
	clients.Wait()
	h.Check(t)
}

// historyClient is a client of the front of Sunbird, whose answers name the lock.
type historyClient struct {
	t       *testing.T
	history *lockhistory.History
	key     string
	number  int
	at      *atomic.Pointer[[]addresses]
	http    *http.Client
	rng     *rand.Rand
}

// useLock takes the lock once as a new owner, and does one of the things that end it.
func (c *historyClient) useLock() {
	owner := uuid.NewString()
	create := func() lockhistory.Answer {
		call := lockhistory.Call{Kind: lockhistory.Acquire, Holder: owner, Keep: true}
		return c.do(call, http.MethodPost, "create", owner, "")
	}
	got := create()
	for range 2 {
		if got.Outcome == lockhistory.Unknown {
			got = create()
		}
	}
	if got.Outcome != lockhistory.Done {
		if c.rng.IntN(4) == 0 {
			c.do(lockhistory.Call{Kind: lockhistory.Force}, http.MethodDelete, "force", administrator, "")
		}
		c.do(lockhistory.Call{Kind: lockhistory.Read}, http.MethodPost, "list", owner, "")
		return
	}
	if c.rng.IntN(3) == 0 {
		renewal := lockhistory.Call{Kind: lockhistory.Renew, Holder: owner, ID: got.ID}
		c.do(renewal, http.MethodPatch, "refresh", owner, got.ID)
	}
	if c.rng.IntN(6) > 0 { // else the lock lives until it is outdated
		c.do(lockhistory.Call{Kind: lockhistory.Release, Holder: owner}, http.MethodDelete, "retire", owner, "")
	}
}

// do makes a call as a user to one of the instances. After an unknown outcome, it returns when
// an instance is ready, so that an outage takes one answer of each client.
func (c *historyClient) do(call lockhistory.Call, method, operation, user, lockID string) lockhistory.Answer {
	call.Key = c.key
	answer := c.history.Do(c.number, call, func() lockhistory.Answer {
		address := c.chooseInstance()["sunbird"] + "/v1/lock/" + operation
		fields := map[string]any{
			"resourceId": c.key, "resourceType": "content", "resourceInfo": "{}", "createdBy": user, "creatorInfo": "{}",
			"reason": "a test", "filters": map[string]string{"resourceId": c.key},
		}
		if lockID != "" {
			fields["lockId"] = lockID
		}
		body, err := json.Marshal(map[string]any{"request": fields})
		if err != nil {
			c.t.Error(err)
		}
		r, err := http.NewRequestWithContext(c.t.Context(), method, address, strings.NewReader(string(body)))
		if err != nil {
			c.t.Error(err)
			return lockhistory.Answer{Outcome: lockhistory.Unknown}
		}
		r.Header.Set("X-Authenticated-Userid", user)
		r.Header.Set("X-Device-Id", "desk")
		answer, err := c.http.Do(r)
		if err != nil {
			return lockhistory.Answer{Outcome: lockhistory.Unknown}
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return lockhistory.Answer{Outcome: lockhistory.Unknown}
		}
		return c.judge(call.Kind, answer.StatusCode, text)
	})
	if answer.Outcome == lockhistory.Unknown {
		waitUntil(c.t, "an instance is ready", func() bool { return isReady(c.t, c.chooseInstance()) })
	}
	return answer
}

func (c *historyClient) chooseInstance() addresses {
	instances := *c.at.Load()
	return instances[c.rng.IntN(len(instances))]
}

func (c *historyClient) judge(kind lockhistory.Kind, status int, text []byte) lockhistory.Answer {
	var a struct {
		Result struct {
			LockKey string
			Data    []struct{ LockID string }
		}
	}
	switch {
	case status == http.StatusOK:
		if err := json.Unmarshal(text, &a); err != nil {
			c.t.Errorf("%s: %v", text, err)
		}
		for _, l := range a.Result.Data {
			a.Result.LockKey = l.LockID
		}
		return lockhistory.Answer{Outcome: lockhistory.Done, ID: a.Result.LockKey}
	case status >= http.StatusInternalServerError:
		return lockhistory.Answer{Outcome: lockhistory.Unknown}
	case kind == lockhistory.Force: // it reads the lock first, which may be another one then
		return lockhistory.Answer{Outcome: lockhistory.Refused}
	case status == http.StatusLocked || status == http.StatusForbidden:
		return lockhistory.Answer{Outcome: lockhistory.Held}
	case status == http.StatusUnprocessableEntity || strings.Contains(string(text), "Resource is not locked"):
		return lockhistory.Answer{Outcome: lockhistory.Absent}
	}
	c.t.Errorf("%s is answered %d %s", kind, status, text)
	return lockhistory.Answer{Outcome: lockhistory.Unknown}
}
