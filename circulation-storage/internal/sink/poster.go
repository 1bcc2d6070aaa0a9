package sink

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"golang.org/x/sync/errgroup"

	"checkoutlock/circulation-storage/internal/events"
	"checkoutlock/config/resolver"
	"checkoutlock/schemas/okapi"
)

// The headers of an event's POST.
const (
	topicHeader = "X-Event-Topic"
	keyHeader   = "X-Event-Key"
)

// postsAtOnce bounds the requests to the address.
const postsAtOnce = 8

// poster sends each message in a POST. Only a 2xx means that it was received.
type poster struct {
	url       string
	transport *http.Transport
	client    *http.Client
}

// newPoster follows no redirect, because a POST may become a GET.
func newPoster(address string) *poster {
	transport := resolver.NewTransport()
	transport.MaxIdleConnsPerHost = postsAtOnce
	return &poster{url: address, transport: transport, client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// ports are those of addresses and proxies that name none.
var ports = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}

// Ping implements events.Sink. It only connects, because the address need not know more than POST. A
// proxy stands for the addresses that are reached through it.
func (p *poster) Ping(ctx context.Context) error {
	u, err := url.Parse(p.url)
	if err != nil {
		return err
	}
	proxy, err := p.transport.Proxy(&http.Request{URL: u})
	if err != nil {
		return err
	}
	to := cmp.Or(proxy, u)
	port := cmp.Or(to.Port(), ports[to.Scheme])
	conn, err := p.transport.DialContext(ctx, "tcp", net.JoinHostPort(to.Hostname(), port))
	if err != nil {
		return err
	}
	return conn.Close()
}

// Send implements events.Sink.
func (p *poster) Send(ctx context.Context, messages []events.Message) []error {
	errs := make([]error, len(messages))
	var g errgroup.Group
	g.SetLimit(postsAtOnce)
	for i, m := range messages {
		g.Go(func() error {
			errs[i] = p.post(ctx, m)
			return nil
		})
	}
	_ = g.Wait()
	return errs
}

func (p *poster) post(ctx context.Context, m events.Message) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(m.Value))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(okapi.TenantHeader, m.Tenant.String())
	r.Header.Set(topicHeader, m.Topic)
	if m.Key != "" {
		r.Header.Set(keyHeader, m.Key)
	}
	answer, err := p.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16)) // so that the connection serves again
	switch answer.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return fmt.Errorf("%w: POST of topic %s was answered %d", events.ErrRefused, m.Topic, answer.StatusCode)
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("POST of topic %s was answered %d", m.Topic, answer.StatusCode)
	}
	return nil
}
