package storageclient

import (
	"net/http"
	"testing"

	"checkoutlock/schemas/fault"
)

func TestClient_CommittedLoan(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status int
		named  fault.Code
		want   fault.Code
	}{
		"there":                             {status: 200},
		"not there":                         {status: 404, named: fault.NotFound, want: fault.NotFound},
		"a 404 of something in between":     {status: 404, want: fault.Unavailable},
		"a standby that does not confirm":   {status: 504, named: fault.Timeout, want: fault.Timeout},
		"a storage that failed":             {status: 500, named: fault.Internal, want: fault.Internal},
		"a storage without its database":    {status: 503, named: fault.Unavailable, want: fault.Unavailable},
		"a proxy without a storage":         {status: 502, want: fault.Unavailable},
		"a tenant that is not known at all": {status: 404, named: fault.UnknownTenant, want: fault.UnknownTenant},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.URL.Path != "/loan-storage/check-outs/"+someID {
					t.Errorf("asked for %s %s", r.Method, r.URL.Path)
				}
				answer(w, tt.status, tt.named, `{"id":"`+someID+`"}`)
			})
			loan, err := c.CommittedLoan(inTenant(t, "diku"), someID)
			if fault.CodeOf(err) != tt.want || (err == nil) != (string(loan) == `{"id":"`+someID+`"}`) {
				t.Errorf("got %s, %v, want %q", loan, err, tt.want)
			}
		})
	}
}

func TestClient_SettleCheckOut(t *testing.T) {
	t.Parallel()
	const loan = `{"loan":{"id":"` + someID + `"}}`
	tests := map[string]struct {
		status  int
		named   fault.Code
		body    string
		givenUp bool
		want    fault.Code
	}{
		"lent":                            {status: 200, body: loan},
		"given up":                        {status: 200, body: `{"givenUp":true}`, givenUp: true},
		"an answer that says neither":     {status: 200, body: `{}`, want: fault.Internal},
		"a storage of an earlier build":   {status: 404, named: fault.NotFound, want: fault.NotFound},
		"a 404 of something in between":   {status: 404, want: fault.Unavailable},
		"a standby that does not confirm": {status: 504, named: fault.Timeout, want: fault.Timeout},
		"a storage without its database":  {status: 503, named: fault.Unavailable, want: fault.Unavailable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost || r.URL.String() != "/loan-storage/check-outs/"+someID+"/settlement" {
					t.Errorf("asked for %s %s", r.Method, r.URL)
				}
				answer(w, tt.status, tt.named, tt.body)
			})
			got, err := c.SettleCheckOut(inTenant(t, "diku"), someID)
			if fault.CodeOf(err) != tt.want || got.GivenUp != tt.givenUp ||
				(string(got.Loan) != "") != (tt.want == "" && !tt.givenUp) {
				t.Errorf("got %+v, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestClient_ReleaseDurably(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status   int
		named    fault.Code
		released bool
	}{
		"released":                        {status: 204, named: "", released: true},
		"gone, and that is durable":       {status: 404, named: fault.NotFound, released: true},
		"a 404 of something in between":   {status: 404, named: "", released: false},
		"a standby that does not confirm": {status: 504, named: fault.Timeout, released: false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodDelete || r.URL.String() != "/check-out-lock-storage/"+someID+"?durable=true" {
					t.Errorf("asked for %s %s", r.Method, r.URL)
				}
				answer(w, tt.status, tt.named, "")
			})
			if err := c.ReleaseDurably(inTenant(t, "diku"), someID); (err == nil) != tt.released {
				t.Errorf("got %v, want it released: %t", err, tt.released)
			}
		})
	}
}

func TestClient_ReleaseIsNotDurable(t *testing.T) {
	t.Parallel()
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "" {
			t.Errorf("asked %s", r.URL)
		}
		answer(w, 204, "", "")
	})
	if err := c.Release(inTenant(t, "diku"), someID); err != nil {
		t.Error(err)
	}
}

func TestClient_ReleaseAcquisition(t *testing.T) {
	t.Parallel()
	for status, released := range map[int]bool{204: true, 404: false, 500: false} {
		c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodDelete || r.URL.String() != "/check-out-lock-storage?requestId="+anotherID+"&userId="+
				someID {
				t.Errorf("asked for %s %s", r.Method, r.URL)
			}
			answer(w, status, "", "")
		})
		if err := c.ReleaseAcquisition(inTenant(t, "diku"), someID, anotherID); (err == nil) != released {
			t.Errorf("answered %d: got %v, want it released: %t", status, err, released)
		}
	}
}
