package resourcelocks

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"checkoutlock/resource-locks/mutex"
)

// client keeps connections for many owners at once.
var client = &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

func acquireMutex(ctx context.Context, at addresses, key, owner string) (*hold, error) {
	c := &mutex.Client{URL: at["mutex"], User: owner, HTTP: client}
	sent := time.Now()
	lock, err := c.Acquire(ctx, key)
	switch {
	case errors.Is(err, mutex.ErrLocked):
		return nil, errRefused
	case errors.Is(err, mutex.ErrUnavailable):
		return nil, errAnswer(errAway, "%v", err)
	case err != nil:
		return nil, err
	}
	h := holdUntilTTL(sent, func(ctx context.Context) error { return c.Release(ctx, key) })
	h.fence = lock.Fence
	return h, nil
}

// sunbirdRequest is the body of create; the other operations ignore what they do not need.
func sunbirdRequest(key, owner string) string {
	body, err := json.Marshal(map[string]any{"request": map[string]string{
		"resourceId": key, "resourceType": "Content", "resourceInfo": "{}", "createdBy": owner,
		"creatorInfo": `{"name":"Ann"}`,
	}})
	if err != nil {
		panic(err)
	}
	return string(body)
}

func acquireSunbird(ctx context.Context, at addresses, key, owner string) (*hold, error) {
	header := []string{"X-Authenticated-Userid", owner, "X-Device-Id", "desk"}
	sent := time.Now()
	status, body, err := call(ctx, http.MethodPost, at["sunbird"]+"/v1/lock/create", sunbirdRequest(key, owner), header...)
	switch {
	case err != nil:
		return nil, errAnswer(errAway, "%v", err)
	case status == http.StatusLocked && strings.Contains(body, `"RESOURCE_LOCKED"`):
		return nil, errRefused
	case status == http.StatusInternalServerError && strings.Contains(body, `"ERR_LOCK_CREATION_FAILED"`):
		return nil, errAnswer(errAway, "%d %s", status, body)
	case status != http.StatusOK:
		return nil, errors.New("sunbird answers " + body)
	}
	return holdUntilTTL(sent, func(ctx context.Context) error {
		status, body, err := call(ctx, http.MethodDelete, at["sunbird"]+"/v1/lock/retire", sunbirdRequest(key, owner),
			header...)
		if err == nil && status != http.StatusOK {
			err = errors.New("sunbird answers " + body)
		}
		return err
	}), nil
}

// call makes a request and returns its status and body. header has names and values.
func call(ctx context.Context, method, url, body string, header ...string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}
