package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"checkoutlock/schemas/okapi"
	"checkoutlock/schemas/pace"
)

// Client calls one instance for a tenant. A nil HTTP means http.DefaultTransport with a
// time-out longer than those of the services.
type Client struct {
	Base   string
	Tenant string
	HTTP   *http.Client
	// Header is sent with each call in addition to the tenant.
	Header http.Header
	// Check, if set, returns why an answer is not one that the services describe.
	Check func(*http.Request, Answer) error
}

// clientTimeout is longer than all time-outs of the services.
const clientTimeout = 45 * time.Second

// Answer is an HTTP answer.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// JSON decodes the answer's body into v.
func (a Answer) JSON(v any) error {
	if err := json.Unmarshal(a.Body, v); err != nil {
		return fmt.Errorf("reading the answer %d %q: %w", a.Status, a.Body, err)
	}
	return nil
}

// Do sends a request. A body of type []byte is sent unchanged, nil sends none, and others
// are sent as JSON. A refusal is an Answer; the error is the network's.
func (c Client) Do(ctx context.Context, method, path string, body any) (Answer, error) {
	raw, given := body.([]byte)
	if !given && body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return Answer{}, fmt.Errorf("writing the body: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, bytes.NewReader(raw))
	if err != nil {
		return Answer{}, err
	}
	for name, values := range c.Header {
		req.Header[name] = values
	}
	if c.Tenant != "" {
		req.Header.Set(okapi.TenantHeader, c.Tenant)
	}
	if body != nil && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	client := c.HTTP
	if client == nil {
		client = &http.Client{Timeout: clientTimeout}
	}
	resp, err := client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	answer := Answer{Status: resp.StatusCode, Header: resp.Header}
	answer.Body, err = io.ReadAll(resp.Body)
	if err == nil && c.Check != nil {
		err = c.Check(req, answer)
	}
	return answer, err
}

// getPause is the time between two attempts of a GET, getTime the time for all.
const (
	getPause = 100 * time.Millisecond
	getTime  = 30 * time.Second
)

// Must is Do for a call that has to be answered 2xx; any other answer is an error. It repeats a GET that is
// answered 503, for getTime: storage on a busy host may not get a connection to PostgreSQL in time.
func (c Client) Must(ctx context.Context, method, path string, body any) (Answer, error) {
	for end := time.Now().Add(getTime); ; {
		a, err := c.Do(ctx, method, path, body)
		switch {
		case err != nil:
			return a, fmt.Errorf("%s %s: %w", method, path, err)
		case a.Status/100 == 2:
			return a, nil
		case method != http.MethodGet, a.Status != http.StatusServiceUnavailable, time.Now().After(end):
			return a, fmt.Errorf("%s %s: answered %d %s", method, path, a.Status, a.Body)
		}
		pace.Wait(ctx, getPause)
	}
}

// InstallTenant installs the client's tenant, with the demo library if sample is set. It
// needs a client of circulation-storage.
func (c Client) InstallTenant(ctx context.Context, sample bool) error {
	type parameter struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	}
	attributes := struct {
		ModuleTo   string      `json:"module_to"`
		Parameters []parameter `json:"parameters"`
	}{ModuleTo: "mod-circulation-storage-1.0.0"}
	if sample {
		attributes.Parameters = []parameter{{"loadReference", "true"}, {"loadSample", "true"}}
	}
	a, err := c.Must(ctx, http.MethodPost, "/_/tenant", attributes)
	for err == nil && a.Status != http.StatusNoContent {
		var job struct {
			ID, Error string
			Complete  bool
		}
		switch err := a.JSON(&job); {
		case err != nil:
			return err
		case job.Error != "":
			return fmt.Errorf("installing tenant %s: %s", c.Tenant, job.Error)
		case job.Complete:
			return nil
		}
		a, err = c.Must(ctx, http.MethodGet, "/_/tenant/"+job.ID+"?wait=5000", nil)
	}
	return err
}
