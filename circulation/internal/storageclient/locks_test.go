package storageclient

import (
	"net/http"
	"testing"

	"checkoutlock/schemas/fault"
)

func TestClient_Lock(t *testing.T) {
	t.Parallel()
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/check-out-lock-storage/"+someID {
			t.Errorf("asked for %s %s", r.Method, r.URL.Path)
		}
		answer(w, 200, "", `{"id":"`+someID+`","userId":"`+anotherID+`","ageMs":7,"holder":"h"}`)
	})
	lock, err := c.Lock(inTenant(t, "diku"), someID)
	if err != nil || lock.ID != someID || lock.UserID != anotherID || lock.AgeMs != 7 || lock.Holder != "h" {
		t.Errorf("got %+v, %v", lock, err)
	}
}

func TestClient_LockThatIsMissing(t *testing.T) {
	t.Parallel()
	asked := 0
	c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		answer(w, 404, fault.NotFound, "Not found")
	})
	for id, want := range map[string]int{"../admin": 0, someID: 1} {
		if _, err := c.Lock(inTenant(t, "diku"), id); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: got %v, want %s", id, err, fault.NotFound)
		}
		if asked > want {
			t.Errorf("%s: storage was asked", id)
		}
		asked = 0
	}
}
