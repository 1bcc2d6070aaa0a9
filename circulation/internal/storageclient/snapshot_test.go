package storageclient

import (
	"io"
	"net/http"
	"testing"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const groupID = "6d5e9a5c-7d0e-4a53-9dd5-2f1c0b8b5e1a"

func TestClient_Snapshot(t *testing.T) {
	t.Parallel()
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if r.URL.Path != "/loan-storage/check-out-facts" || r.URL.RawQuery != "" || err != nil ||
			string(body) != `{"userBarcode":"p","itemBarcode":"b","titleLevel":true}` {
			t.Errorf("got %s %s %v", r.URL, body, err)
		}
		answer(w, 200, "", `{"user":{"id":"u","active":true},"manualBlocks":[{"desc":"owes","borrowing":true}],
			"automatedBlocks":{"automatedPatronBlocks":[{"blockBorrowing":true,"message":"too many"}]},
			"proxyRelations":[{"status":"Active","expirationDate":null}],
			"item":{"id":"i","_version":3},"holdings":{"id":"h","instanceId":"n"},"instance":{"id":"n","title":"Moby Dick"},
			"onLoan":true,"requests":[{"id":"r","position":1}],"openLoans":[{"materialTypeId":"m","loanTypeId":"l","count":2}]}`)
	})
	seen, err := c.Snapshot(inTenant(t, "diku"), schemas.CheckOutSubjects{
		UserBarcode: "p", ItemBarcode: "b", TitleLevel: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen.User.ID != "u" || seen.Proxy.ID != "" || len(seen.ProxyRelations) != 1 || seen.Item.Version != 3 ||
		len(seen.ManualBlocks) != 1 || len(seen.AutomatedBlocks.Blocks) != 1 ||
		seen.AutomatedBlocks.Blocks[0].Message != "too many" ||
		seen.Holdings.InstanceID != "n" || seen.Instance.Title != "Moby Dick" || seen.OnLoan == nil || !*seen.OnLoan ||
		len(seen.Requests) != 1 || len(seen.OpenLoans) != 1 || seen.OpenLoans[0].Count != 2 {
		t.Errorf("got %+v", seen)
	}
}

func TestClient_Snapshot_ConfirmsReferenceRecords(t *testing.T) {
	t.Parallel()
	version, groups := "1", 0
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			groups++
			answer(w, 200, "", `{"id":"`+groupID+`"}`)
			return
		}
		answer(w, 200, "", `{"onLoan":false,"referenceVersion":"`+version+`"}`)
	})
	advance := stopClock(c)
	for i, step := range []struct {
		name, tenant, version string
		groups                int
	}{
		{name: "the first time", tenant: "diku", version: "1", groups: 1},
		{name: "unchanged", tenant: "diku", version: "1", groups: 1},
		{name: "changed", tenant: "diku", version: "2", groups: 2},
		{name: "another tenant", tenant: "college", version: "1", groups: 3},
		{name: "unchanged since", tenant: "diku", version: "2", groups: 3},
	} {
		version = step.version
		ctx := inTenant(t, step.tenant)
		_, err := c.Snapshot(ctx, schemas.CheckOutSubjects{})
		if err == nil {
			_, err = c.Group(ctx, groupID)
		}
		if err != nil || groups != step.groups {
			t.Errorf("%d, %s: read the group %d times, want %d: %v", i, step.name, groups, step.groups, err)
		}
		advance(cacheAge)
	}
	if _, err := c.Group(inTenant(t, "diku"), groupID); err != nil || groups != 4 {
		t.Errorf("read the group %d times, want once more without a look at the version: %v", groups, err)
	}
}

// An answer of something else must not pass for a patron without loans and blocks.
func TestClient_Snapshot_NeedsAWholeAnswer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		body   string
		want   fault.Code
	}{
		"an empty object":  {status: 200, body: `{}`, want: fault.Internal},
		"no JSON":          {status: 200, body: `<html>`, want: fault.Internal},
		"an older storage": {status: 404, body: `{"errors":[]}`, want: fault.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, tt.status, "", tt.body) })
			if _, err := c.Snapshot(inTenant(t, "diku"), schemas.CheckOutSubjects{}); fault.CodeOf(err) != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}
