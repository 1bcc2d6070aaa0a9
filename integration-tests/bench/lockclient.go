package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"checkoutlock/schemas/okapi"
)

// tenant is the library of all measurements.
const tenant = "bench"

// lockClient acquires and releases locks over HTTP, with as little work as possible.
type lockClient struct {
	http *http.Client
	url  string
}

func newLockClient(url string, connections int) *lockClient {
	return &lockClient{url: url + lockPath, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}}
}

// close closes the idle connections.
func (c *lockClient) close() { c.http.CloseIdleConnections() }

// acquire returns the lock's id, "" if it is held.
func (c *lockClient) acquire(ctx context.Context, user string, ttlMs, waitMs int) (string, error) {
	body := fmt.Sprintf(`{"userId":"%s","ttlMs":%d}`, user, ttlMs)
	if waitMs > 0 {
		body = fmt.Sprintf(`{"userId":"%s","ttlMs":%d,"waitMs":%d}`, user, ttlMs, waitMs)
	}
	status, answer, err := c.send(ctx, http.MethodPost, c.url, body)
	if err != nil {
		return "", err
	}
	if status == http.StatusServiceUnavailable {
		return "", nil
	}
	var lock struct {
		ID string `json:"id"`
	}
	if status != http.StatusCreated {
		return "", fmt.Errorf("acquiring was answered %d %s", status, answer)
	}
	return lock.ID, json.Unmarshal(answer, &lock)
}

func (c *lockClient) release(ctx context.Context, id string) error {
	status, answer, err := c.send(ctx, http.MethodDelete, c.url+"/"+id, "")
	if err == nil && status != http.StatusNoContent {
		err = fmt.Errorf("releasing was answered %d %s", status, answer)
	}
	return err
}

// cycle acquires the lock of a patron of its own and releases it.
func (c *lockClient) cycle(ctx context.Context, user string) error {
	id, err := c.acquire(ctx, user, 3000, 0)
	if err != nil {
		return err
	}
	if id == "" {
		return fmt.Errorf("the lock of a patron of its own is held")
	}
	return c.release(ctx, id)
}

func (c *lockClient) send(ctx context.Context, method, url, body string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set(okapi.TenantHeader, tenant)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}
