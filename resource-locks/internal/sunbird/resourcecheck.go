package sunbird

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"checkoutlock/config/resolver"
)

const (
	// checkPath is the path of Sunbird's content service.
	checkPath = "/v1/content/getContentLockValidation"
	// callTimeout bounds one call of another service.
	callTimeout = 5 * time.Second
	// maxCheckAnswer bounds the answer in bytes. It has the whole content.
	maxCheckAnswer = 4 << 20
	// checkFailed is the text if the check gives no reason.
	checkFailed = "Unable to fetch content details"
)

// resourceCheck asks a content service whether a caller may lock a resource.
type resourceCheck struct {
	url    string // empty allows all
	client *http.Client
}

// newResourceCheck adds Sunbird's path to a URL without one.
func newResourceCheck(address string) resourceCheck {
	if u, err := url.Parse(address); err == nil && address != "" && strings.Trim(u.Path, "/") == "" {
		u.Path = checkPath
		address = u.String()
	}
	return resourceCheck{url: address, client: newHTTPClient()}
}

// newHTTPClient returns a client that follows no redirect, which could send the caller's
// token or message to another host.
func newHTTPClient() *http.Client {
	return &http.Client{
		Timeout: callTimeout, Transport: resolver.NewTransport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// allow returns nil, or why the caller may not lock. The error is the reason for the log,
// if the check itself failed.
func (rc resourceCheck) allow(ctx context.Context, c *call, api string) (refusal string, err error) {
	if rc.url == "" {
		return "", nil
	}
	answer, err := rc.ask(ctx, c, api)
	switch {
	case err != nil:
		return cmp.Or(answer.Result.Message, checkFailed), err
	case answer.Result.Validation == nil:
		return checkFailed, errors.New("the answer has no result.validation")
	case *answer.Result.Validation:
		return "", nil
	}
	return cmp.Or(answer.Result.Message, checkFailed), nil
}

type checkAnswer struct {
	Result struct {
		Validation *bool  `json:"validation"`
		Message    string `json:"message"`
	} `json:"result"`
}

func (rc resourceCheck) ask(ctx context.Context, c *call, api string) (answer checkAnswer, err error) {
	request := maps.Clone(c.message.request)
	if request["apiName"], err = json.Marshal(api); err != nil {
		return answer, err
	}
	whole := maps.Clone(c.message.whole)
	if whole["request"], err = json.Marshal(request); err != nil {
		return answer, err
	}
	body, err := json.Marshal(whole)
	if err != nil {
		return answer, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, rc.url, bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	for name, values := range c.header {
		if strings.HasPrefix(name, "X-") || name == "Authorization" {
			r.Header[name] = values
		}
	}
	r.Header.Del("X-Http-Method-Override")
	r.Header.Set(userHeader, c.user.id)
	r.Header.Set("Content-Type", "application/json")
	response, err := rc.client.Do(r)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	err = json.NewDecoder(io.LimitReader(response.Body, maxCheckAnswer)).Decode(&answer)
	if response.StatusCode != http.StatusOK { // an unknown resource is 500 with a message
		return answer, fmt.Errorf("the answer has the status %s", response.Status)
	}
	return answer, err
}
