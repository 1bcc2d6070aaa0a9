package sunbird

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/schemas/fault"
)

// pagedStore notes the largest list that was read, and may fail after some lists.
type pagedStore struct {
	*enginetest.Store
	largest, lists, failAfter int
	namespaces                []string // of lists
}

func (s *pagedStore) List(ctx context.Context, f engine.Filter) ([]engine.Lock, error) {
	s.lists++
	s.namespaces = append(s.namespaces, f.Namespace)
	if s.failAfter > 0 && s.lists > s.failAfter {
		return nil, fault.New(fault.Unavailable, "the database is away")
	}
	locks, err := s.Store.List(ctx, f)
	s.largest = max(s.largest, len(locks))
	return locks, err
}

// newLongList returns a front whose list has n locks of 1 KB each.
func newLongList(t *testing.T, n int) (*harness, *pagedStore) {
	t.Helper()
	f := newHarness(t, nil)
	store := &pagedStore{Store: f.store}
	f.server.Locks = engine.NewLocks(store, observer{})
	for i := range n {
		key := engine.Key{Namespace: Namespaces + "content", Name: fmt.Sprint("do_", i)}
		a := engine.Acquire{Key: key, Owner: "ann", TTL: time.Hour}
		a.Value = `{"resourceInfo":"` + strings.Repeat("x", 1000) + `"}`
		if _, err := store.Acquire(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	return f, store
}

func TestList_OfManyLocksIsSentInParts(t *testing.T) {
	t.Parallel()
	f, store := newLongList(t, 450)
	a := f.list("").wants(t, "api.lock.list")
	if *a.Result.Count != 450 || len(a.Result.Data) != 450 || *a.Params.MsgID == "" {
		t.Errorf("got %d of %d locks, want 450", len(a.Result.Data), *a.Result.Count)
	}
	if store.largest > 200 {
		t.Errorf("%d locks were read at once", store.largest)
	}
}

// The names behind the first 200 are looked up when a part of the list was sent.
func TestList_JudgesEachNameBeforeItIsSent(t *testing.T) {
	t.Parallel()
	f, _ := newLongList(t, 250)
	names := []string{strings.Repeat("z", engine.MaxName+1)} // the last one in order
	for i := range 250 {
		names = append(names, fmt.Sprint("do_", i))
	}
	list := func() answer {
		return f.list(`{"request":{"filters":{"resourceId":["` + strings.Join(names, `","`) + `"]}}}`)
	}
	list().refused(t, http.StatusBadRequest, "ERR_LISTING_LOCK_FAILED",
		`"filters.resourceId" must have at most 255 characters in each id`)
	names[0] = strings.Repeat("ä", engine.MaxName)
	if a := list().wants(t, "api.lock.list"); *a.Result.Count != 250 {
		t.Errorf("got %d locks, want all 250", *a.Result.Count)
	}
}

// A search for names in several namespaces at once would read all locks of all of them.
func TestList_LooksNamesUpInEachType(t *testing.T) {
	t.Parallel()
	f := newHarness(t, func(cfg *Settings) { cfg.ResourceTypes = []string{"Content", "asset", "content"} })
	store := &pagedStore{Store: f.store}
	f.server.Locks = engine.NewLocks(store, observer{})
	for _, namespace := range []string{"sunbird/content", "sunbird/asset"} {
		key := engine.Key{Namespace: namespace, Name: "do_1"}
		if _, err := store.Acquire(t.Context(), engine.Acquire{Key: key, Owner: "ann", TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	a := f.list(`{"request":{"filters":{"resourceId":"do_1"}}}`).wants(t, "api.lock.list")
	want := []string{"sunbird/asset", "sunbird/content"}
	if *a.Result.Count != 2 || !slices.Equal(store.namespaces, want) {
		t.Errorf("got %d locks of %q, want one of each of %q", *a.Result.Count, store.namespaces, want)
	}
}

func TestList_ThatFailsHalfWayIsNoAnswer(t *testing.T) {
	t.Parallel()
	f, store := newLongList(t, 450)
	store.failAfter = 1
	server := httptest.NewServer(f.server)
	defer server.Close()
	send := func() (status int, text string, err error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/v1/lock/list", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(deviceHeader, "d")
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return answer.StatusCode, string(body), err
	}
	if _, text, err := send(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %d bytes, %v, want a connection that ends", len(text), err)
	}
	status, text, err := send() // nothing was sent before the failure
	if err != nil || status != http.StatusInternalServerError || !strings.Contains(text, "Listing lock failed") {
		t.Errorf("got %d %s, %v, want the failure", status, text, err)
	}
}

// unreadWriter is the answer of a client that does not read until read is closed.
type unreadWriter struct {
	http.ResponseWriter
	read     chan struct{}
	deadline time.Time // for writing
}

func (w *unreadWriter) SetWriteDeadline(deadline time.Time) error {
	w.deadline = deadline
	return nil
}

func (w *unreadWriter) Write(p []byte) (int, error) {
	var late <-chan time.Time
	if !w.deadline.IsZero() {
		late = time.After(time.Until(w.deadline))
	}
	select {
	case <-w.read:
		return w.ResponseWriter.Write(p)
	case <-late:
		return 0, os.ErrDeadlineExceeded
	}
}

// fillLists lets as many clients ask for lists as may at once. They read when read is closed.
func (f *harness) fillLists(read chan struct{}, hasDeadline bool) {
	for range maxLists {
		var w http.ResponseWriter = &unreadWriter{ResponseWriter: httptest.NewRecorder(), read: read}
		if !hasDeadline {
			w = struct{ http.ResponseWriter }{w}
		}
		go func() {
			defer func() { _ = recover() }() // the end of a connection
			r := httptest.NewRequestWithContext(f.t.Context(), http.MethodPost, "/v1/lock/list", nil)
			r.Header.Set(deviceHeader, "d")
			f.server.ServeHTTP(w, r)
		}()
		synctest.Wait()
	}
}

func TestList_ClientsThatDoNotReadKeepNoPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, _ := newLongList(t, 100)
		read := make(chan struct{})
		defer close(read)
		f.fillLists(read, true)
		<-time.After(requestTimeout - time.Second)
		f.list("").wants(t, "api.lock.list")
	})
}

func TestList_ClientsThatDoNotReadKeepFewLists(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store := newLongList(t, 100)
		read := make(chan struct{})
		begin := sync.OnceFunc(func() { close(read) })
		defer begin()
		f.fillLists(read, false)
		f.list("").refused(t, 503, "ERR_LISTING_LOCK_FAILED", "Other lists are under way")
		if store.lists != maxLists {
			t.Errorf("%d pages were read, want %d", store.lists, maxLists)
		}
		begin()
		synctest.Wait()
		for range maxLists + 1 { // each list has let the next one go
			f.list("").wants(t, "api.lock.list")
		}
	})
}
