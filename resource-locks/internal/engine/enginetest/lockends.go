package enginetest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/fault"
)

func testRefresh(c *lockTest) {
	l := c.acquireAs(engine.Acquire{Key: draft("d"), Owner: "ann", Kind: "k", Value: "v", TTL: time.Minute}, engine.Granted).Lock
	r := engine.Refresh{Key: l.Key, ID: l.ID, Owner: "ann", TTL: time.Hour}
	c.advance(time.Second)
	got := c.refresh(r, engine.Renewed).Lock
	want := l
	want.GrantedAt, want.RenewedAt, want.ExpiresAt = got.GrantedAt, got.RenewedAt, got.RenewedAt.Add(time.Hour)
	if !reflect.DeepEqual(got, want) || got.RenewedAt.Sub(got.GrantedAt) < time.Second {
		c.Errorf("got %+v, want %+v", got, want)
	}
	c.wantLock(got)

	other := r
	other.Owner = "bob"
	if refused := c.refresh(other, engine.Held).Lock; !reflect.DeepEqual(refused, got) {
		c.Errorf("refused with %+v, want %+v", refused, got)
	}
	wrong := r
	wrong.ID = uuid.New()
	c.refresh(wrong, engine.UnknownID)
	free := r
	free.Key = draft("free")
	c.refresh(free, engine.UnknownID)
	c.wantLock(got)
	c.advance(time.Hour)
	c.refresh(r, engine.UnknownID) // without ResumeWithin
	c.wantFree()
}

func testResume(c *lockTest) {
	for name, end := range map[string]func(){
		"released": func() { c.release("d", "ann", engine.Released) },
		"expired":  func() { c.advance(time.Hour) },
		"swept": func() {
			c.advance(time.Hour + engine.SweepDelay)
			c.sweep(24 * time.Hour)
		},
	} {
		l := c.acquireAs(engine.Acquire{Key: draft("d"), Owner: "ann", Kind: "k", Value: name, TTL: time.Hour}, engine.Granted).Lock
		if _, err := c.store.Ask(c.ctx, l.Key, engine.AskedFor{By: "bob"}); err != nil {
			c.Fatal(err)
		}
		end()
		c.advance(9 * time.Minute)
		r := engine.Refresh{Key: l.Key, ID: l.ID, Owner: "ann", TTL: time.Hour, ResumeWithin: time.Hour, ResumeAs: uuid.New()}
		other := r
		other.Owner = "bob"
		c.refresh(other, engine.UnknownID)
		wrong := r
		wrong.ID = uuid.New()
		c.refresh(wrong, engine.UnknownID)
		late := r
		late.ResumeWithin = 9 * time.Minute
		c.refresh(late, engine.UnknownID)
		c.wantFree()

		got := c.refresh(r, engine.Granted)
		again := got.Lock
		want := engine.Lock{
			Key: l.Key, ID: again.ID, Fence: again.Fence, Owner: "ann", Kind: "k", Value: name,
			GrantedAt: again.GrantedAt, RenewedAt: again.GrantedAt, ExpiresAt: again.GrantedAt.Add(time.Hour),
		}
		if !reflect.DeepEqual(again, want) || again.ID != r.ResumeAs || again.Fence <= l.Fence || got.Expired != (name == "expired") {
			c.Errorf("%s: resumed %+v, want %+v with the new id, a greater fence, and the expiry if it is new", name, got, want)
		}
		c.wantLock(want)
		c.refresh(r, engine.UnknownID) // the former id
		c.release("d", "ann", engine.Released)
		c.acquire("d", "bob", engine.Granted)
		r.ID = again.ID
		c.refresh(r, engine.UnknownID) // another has locked it since
		c.release("d", "bob", engine.Released)
	}
}

func testAmend(c *lockTest) {
	const value = `{"device": "a", "info": "<{\"x\": 1}>"}`
	l := c.acquireAs(engine.Acquire{Key: draft("d"), Owner: "ann", Value: value, TTL: time.Hour}, engine.Granted).Lock
	r := engine.Refresh{Key: l.Key, ID: l.ID, Owner: "ann", TTL: time.Hour, ResumeWithin: time.Hour, Amend: `{"device": "b", "name": "ä"}`}
	if got := c.refresh(r, engine.Renewed).Lock; got.Value != value {
		c.Errorf("a live lock has the value %s, want %s", got.Value, value)
	}
	c.release("d", "ann", engine.Released)
	got := c.refresh(r, engine.Granted).Lock
	var members map[string]string
	if err := json.Unmarshal([]byte(got.Value), &members); err != nil {
		c.Fatal(err)
	}
	want := map[string]string{"device": "b", "info": `<{"x": 1}>`, "name": "ä"}
	if !reflect.DeepEqual(members, want) {
		c.Errorf("resumed with the value %q, want %q", members, want)
	}
	if got.ID == l.ID {
		c.Errorf("resumed with the id %s, want another", got.ID)
	}
	c.wantLock(got)
}

func testResumeRace(c *lockTest) {
	for round := range 10 {
		name := strconv.Itoa(round)
		l := c.acquire(name, "ann", engine.Granted).Lock
		c.release(name, "ann", engine.Released)
		won := make([]bool, callers)
		atOnce(func(i int) {
			if i%2 == 0 {
				g, err := c.store.Acquire(c.ctx, engine.Acquire{Key: l.Key, Owner: fmt.Sprint("owner ", i), TTL: time.Hour})
				if err != nil {
					c.Error(err)
				}
				won[i] = g.Outcome == engine.Granted
				return
			}
			r, err := c.store.Refresh(c.ctx, engine.Refresh{Key: l.Key, ID: l.ID, Owner: "ann", TTL: time.Hour, ResumeWithin: time.Hour})
			if err != nil {
				c.Error(err)
			}
			won[i] = r.Outcome == engine.Granted
		})
		if n := countTrue(won); n != 1 {
			c.Fatalf("round %d: %d won, want 1", round, n)
		}
	}
}

func testRelease(c *lockTest) {
	l := c.acquire("d", "ann", engine.Granted).Lock
	for _, other := range []string{"bob", ""} {
		if got := c.release("d", other, engine.Held); !reflect.DeepEqual(got, l) {
			c.Errorf("refused with %+v, want %+v", got, l)
		}
	}
	c.wantLock(l)
	if got := c.release("d", "ann", engine.Released); got.ID != l.ID || got.Owner != "ann" || got.Fence != l.Fence {
		c.Errorf("released %+v, want %+v", got, l)
	}
	c.wantFree()
	for _, owner := range []string{"ann", "bob", ""} {
		c.release("d", owner, engine.Free)
		c.release("never", owner, engine.Free)
	}
	next := c.acquire("d", "bob", engine.Granted).Lock
	c.release("d", "ann", engine.Held)
	c.wantLock(next)
}

func testReleaseRace(c *lockTest) {
	for round := range 10 {
		name := strconv.Itoa(round)
		c.acquire(name, "ann", engine.Granted)
		released := make([]bool, callers)
		atOnce(func(i int) {
			r, err := c.store.Release(c.ctx, draft(name), "ann")
			if err != nil || r.Outcome == engine.Held {
				c.Errorf("got %s, %v", r.Outcome, err)
			}
			released[i] = r.Outcome == engine.Released
		})
		if n := countTrue(released); n != 1 {
			c.Fatalf("round %d: %d released, want 1", round, n)
		}
	}
}

func testForceRelease(c *lockTest) {
	note := engine.Note{By: "eve", Reason: "stuck"}
	l := c.acquire("d", "ann", engine.Granted).Lock
	for name, id := range map[string]uuid.UUID{"d": uuid.New(), "free": l.ID} {
		if _, err := c.store.ForceRelease(c.ctx, draft(name), id, note); !fault.Is(err, fault.NotFound) {
			c.Errorf("of another lock: %v", err)
		}
	}
	c.wantLock(l)
	got, err := c.store.ForceRelease(c.ctx, l.Key, l.ID, note)
	if err != nil || got.ID != l.ID || got.Owner != "ann" {
		c.Errorf("got %+v, %v, want the lock", got, err)
	}
	c.wantFree()
	c.release("d", "ann", engine.Free)
	c.refresh(engine.Refresh{Key: l.Key, ID: l.ID, Owner: "ann", TTL: time.Hour, ResumeWithin: time.Hour}, engine.UnknownID)
	if _, err := c.store.ForceRelease(c.ctx, l.Key, l.ID, note); !fault.Is(err, fault.NotFound) {
		c.Errorf("twice: %v", err)
	}
	second := c.acquire("d", "bob", engine.Granted).Lock
	if _, err := c.store.ForceRelease(c.ctx, l.Key, second.ID, engine.Note{By: "eve", Reason: "stuck again"}); err != nil {
		c.Fatal(err)
	}
	all, err := c.store.Releases(c.ctx, 10)
	if err != nil || len(all) != 2 || all[0].At.Before(all[1].At) {
		c.Fatalf("Releases = %+v, %v, want two, newest first", all, err)
	}
	want := engine.Release{Note: note, Namespace: "ns", Name: "d", Owner: "ann", Fence: l.Fence, At: all[1].At}
	if all[1] != want || all[0].Reason != "stuck again" || all[1].At.IsZero() {
		c.Errorf("kept %+v, want %+v", all, want)
	}
	if latest, err := c.store.Releases(c.ctx, 1); err != nil || len(latest) != 1 || latest[0] != all[0] {
		c.Errorf("the latest is %+v, %v, want %+v", latest, err, all[0])
	}
}

func testAsk(c *lockTest) {
	key := draft("d")
	if _, err := c.store.Ask(c.ctx, key, engine.AskedFor{By: "bob"}); !fault.Is(err, fault.NotFound) {
		c.Errorf("for a free key: %v", err)
	}
	l := c.acquire("d", "ann", engine.Granted).Lock
	var asked []engine.AskedFor
	for i := range engine.MaxRequests + 2 {
		asked = append(asked, engine.AskedFor{By: fmt.Sprint("user ", i), Name: "Bob \"ä\"", Message: "please\n"})
	}
	asked = append(asked, asked[5])
	asked[len(asked)-1].Message = "again"
	var got engine.Lock
	for _, a := range asked {
		var err error
		if got, err = c.store.Ask(c.ctx, key, a); err != nil {
			c.Fatal(err)
		}
	}
	asked = slices.Delete(asked, 5, 6)
	asked = asked[len(asked)-engine.MaxRequests:]
	stored := got
	got.Requests = slices.Clone(got.Requests)
	for i := range got.Requests {
		if at := got.Requests[i].At; at.Before(l.GrantedAt) || at.Location() != time.UTC {
			c.Errorf("request %d is of %s", i, at)
		}
		got.Requests[i].At = time.Time{}
	}
	want := l
	want.Requests = asked
	if !reflect.DeepEqual(got, want) {
		c.Errorf("got %+v, want %+v", got, want)
	}
	c.wantLock(stored)
	c.release("d", "ann", engine.Released)
	if _, err := c.store.Ask(c.ctx, key, asked[0]); !fault.Is(err, fault.NotFound) {
		c.Errorf("after the release: %v", err)
	}
	if next := c.acquire("d", "ann", engine.Granted).Lock; len(next.Requests) != 0 {
		c.Errorf("the next grant has %+v", next.Requests)
	}
}

func countTrue(all []bool) (n int) {
	for _, b := range all {
		if b {
			n++
		}
	}
	return n
}
