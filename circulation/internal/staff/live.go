package staff

import (
	"bytes"
	"context"
	"html"
	"net/http"
	"strings"
	"time"

	"checkoutlock/schemas/fault"
	"checkoutlock/web/page"
)

// Streams keep open pages up to date with server-sent events (WHATWG HTML, section 9.2).
// An event is HTML: parts of the page, rendered again by the same template.

const (
	// maxStreams bounds the open streams of a process, because each one polls storage.
	maxStreams = 32
	// quietTime is the longest silence of a stream, so that no proxy closes it as idle.
	quietTime = 15 * time.Second
)

// trouble is the part of a page that says that it is not up to date.
func (v *visit) trouble() []byte {
	return []byte(`<div data-live="trouble"><p class="strip">` + html.EscapeString(v.say("live.trouble", nil)) + `</p></div>`)
}

// stream calls read at each interval and sends what it returns, if that has changed. A
// stream ends with its request, and the browser then opens the next one. So no stream
// outlives the permission for long. All streams end when the service stops.
//
// A page of another site gets no stream: its visitor's browser would sign in and take a
// place.
func (p *pages) stream(v *visit, every time.Duration, read func() ([]byte, error)) error {
	if page.IsCrossSite(v.c.Request()) {
		return fault.New(fault.Forbidden, "Only the staff pages themselves may follow what is new")
	}
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		return v.c.String(http.StatusTooManyRequests, v.say("live.tooMany", nil))
	}
	ctx, cancel := context.WithCancel(v.ctx())
	defer cancel()
	go func() {
		select {
		case <-p.stopped:
			cancel()
		case <-ctx.Done():
		}
	}()
	v.c.SetRequest(v.c.Request().WithContext(ctx))
	p.writeStream(v, every, read)
	return nil
}

// writeStream writes a stream until its request ends or the browser leaves.
func (p *pages) writeStream(v *visit, every time.Duration, read func() ([]byte, error)) {
	ctx := v.ctx()
	h := v.c.Response().Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // a proxy must not buffer events
	v.c.Response().WriteHeader(http.StatusOK)
	if v.c.Request().Method == http.MethodHead {
		return
	}
	if v.send("retry: 1000\n\n") != nil {
		return
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var last []byte
	var sent time.Time
	for {
		news, err := read()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			news = v.trouble()
		}
		var text string
		switch {
		case !bytes.Equal(news, last):
			if err != nil { // logged once, not for each read
				p.log.WarnContext(ctx, "page not kept up to date", "err", err)
			}
			text = formatEvent(news)
		case time.Since(sent) >= quietTime:
			text = ": nothing new\n\n"
		}
		if text != "" {
			if v.send(text) != nil {
				return // the browser left
			}
			last, sent = news, time.Now()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// formatEvent writes HTML as one event. CR LF, LF and CR all end a line of a stream, so
// each line of the HTML becomes a line of data.
func formatEvent(content []byte) string {
	var out strings.Builder
	for line := range strings.Lines(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(content))) {
		out.WriteString("data: " + strings.TrimSuffix(line, "\n") + "\n")
	}
	return out.String() + "\n"
}

func (v *visit) send(text string) error {
	if _, err := v.c.Response().Write([]byte(text)); err != nil {
		return err
	}
	// Echo's Response.Flush panics if its writer cannot flush; this returns an error.
	return http.NewResponseController(v.c.Response().Writer).Flush()
}
