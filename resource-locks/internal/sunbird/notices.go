package sunbird

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

const (
	// maxNotices bounds the notices that wait.
	maxNotices = 1000
	// noticePatience bounds all tries of one notice.
	noticePatience = time.Minute
)

// notice is a request for a lock as the webhook gets it. A repeat has the same ID.
type notice struct {
	ID            string `json:"id"`
	ResourceID    string `json:"resourceId"`
	ResourceType  string `json:"resourceType"`
	LockedBy      string `json:"lockedBy"`
	ExpiresAt     string `json:"expiresAt"`
	RequestedBy   string `json:"requestedBy"`
	RequesterName string `json:"requesterName,omitempty"`
	Message       string `json:"message"`
}

// notices sends requests for locks to a webhook, one after the other. It keeps them in
// memory, because the database has the requests. So no request waits for the webhook or
// fails with it, and a stop drops what was not sent.
type notices struct {
	url     string // empty sends none
	client  *http.Client
	queue   chan notice
	outcome *prometheus.CounterVec
	log     *slog.Logger
}

func newNotices(address string, registry prometheus.Registerer, log *slog.Logger) *notices {
	n := &notices{url: address, client: newHTTPClient(), queue: make(chan notice, maxNotices), log: log}
	metrics := promauto.With(registry)
	n.outcome = metrics.NewCounterVec(prometheus.CounterOpts{
		Name: "sunbird_notices_total", Help: "Notices of requests for locks, by what became of them.",
	}, []string{"outcome"})
	for _, outcome := range []string{"delivered", "failed", "dropped"} { // so that a rate exists before the first one
		n.outcome.WithLabelValues(outcome)
	}
	metrics.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sunbird_notices_waiting", Help: "Notices that wait to be sent.",
	}, func() float64 { return float64(len(n.queue)) })
	return n
}

// add stores a notice to be sent. It does not block: a notice without room is dropped.
func (n *notices) add(ctx context.Context, next notice) {
	if n.url == "" {
		return
	}
	select {
	case n.queue <- next:
	default:
		n.outcome.WithLabelValues("dropped").Inc()
		n.log.WarnContext(ctx, "a notice was dropped, because too many wait", "waiting", maxNotices)
	}
}

// run sends notices until ctx is done.
func (n *notices) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			n.dropWaiting(ctx)
			return
		case next := <-n.queue:
			n.deliver(ctx, next)
		}
	}
}

// dropWaiting counts what a stop leaves unsent.
func (n *notices) dropWaiting(ctx context.Context) {
	if waiting := len(n.queue); waiting > 0 {
		n.outcome.WithLabelValues("dropped").Add(float64(waiting))
		n.log.WarnContext(ctx, "notices were not sent before the stop", "waiting", waiting)
	}
}

// deliver repeats a notice until the webhook takes or refuses it.
func (n *notices) deliver(ctx context.Context, next notice) {
	pauses := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(200*time.Millisecond), backoff.WithMaxInterval(10*time.Second),
		backoff.WithMaxElapsedTime(noticePatience),
	)
	err := backoff.Retry(func() error { return n.post(ctx, next) }, backoff.WithContext(pauses, ctx))
	switch {
	case err == nil:
		n.outcome.WithLabelValues("delivered").Inc()
	case ctx.Err() != nil:
		n.outcome.WithLabelValues("dropped").Inc()
	default:
		n.outcome.WithLabelValues("failed").Inc()
		n.log.WarnContext(ctx, "a notice was not delivered", "notice", next.ID, "err", err)
	}
}

// post sends a notice once. Its error does not name the URL, which may have a secret.
func (n *notices) post(ctx context.Context, next notice) error {
	body, err := json.Marshal(next)
	if err != nil {
		return backoff.Permanent(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url, bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(errors.New("SUNBIRD_NOTICE_URL cannot be used"))
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := n.client.Do(r)
	if named, ok := errors.AsType[*url.Error](err); ok {
		return named.Err
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 4<<10) // so that the connection serves the next one
	return judgeStatus(response.StatusCode)
}

// judgeStatus returns nil for a status of success. Only an answer that may change is worth
// a repeat.
func judgeStatus(status int) error {
	err := fmt.Errorf("the webhook answered %d", status)
	switch {
	case status < http.StatusMultipleChoices:
		return nil
	case status >= http.StatusInternalServerError, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout:
		return err
	}
	return backoff.Permanent(err)
}
