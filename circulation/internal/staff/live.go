package staff

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"checkoutlock/schemas/fault"
)

// Streams tell open pages what changes, as server-sent events (WHATWG HTML, section
// 9.2). An event is HTML: the page's own parts again, made by the same template.

const (
	// maxStreams is how many pages of all tenants are told at a time by one process;
	// each asks storage again and again.
	maxStreams = 32
	// quietTime is after how long without news a stream shows that it lives, so that
	// nothing in between takes it for dead.
	quietTime = 15 * time.Second
)

// trouble is the part of a page that says that it is not up to date.
const trouble = `<div data-live="trouble"><p class="strip">What is new could not be read just now. What stands here is the last that is known; this page tries again by itself.</p></div>`

// stream sends what read returns: at once, then whenever it is something else; it
// looks every so often. The stream ends with the request, which the browser then
// makes again, so no stream outlives the permission to see it for long. It ends at
// once when the service stops.
//
// A page of another site gets none, since its visitor's browser would sign in and
// take the places of those who follow.
func (p *Pages) stream(v *visit, every time.Duration, read func() ([]byte, error)) error {
	if fromElsewhere(v.Request()) {
		return fault.New(fault.Forbidden, "Only the staff pages themselves may follow what is new")
	}
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		return v.String(http.StatusTooManyRequests, "Too many pages follow what is new. This one tries again by itself.")
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
	v.SetRequest(v.Request().WithContext(ctx))
	p.tell(v, every, read)
	return nil
}

// tell writes a stream until its request ends or the browser leaves.
func (p *Pages) tell(v *visit, every time.Duration, read func() ([]byte, error)) {
	ctx := v.ctx()
	h := v.Response().Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // a proxy in front must not collect events
	v.Response().WriteHeader(http.StatusOK)
	if v.Request().Method == http.MethodHead {
		return
	}
	if send(v, "retry: 1000\n\n") != nil {
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
			news = []byte(trouble)
		}
		var text string
		switch {
		case !bytes.Equal(news, last):
			if err != nil { // once, not at each try
				p.Log.WarnContext(ctx, "page not kept up to date", "err", err)
			}
			text = event(news)
		case time.Since(sent) >= quietTime:
			text = ": nothing new\n\n"
		}
		if text != "" {
			if send(v, text) != nil {
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

// event is HTML as one event. All of CR LF, LF and CR end a line of a stream, so
// none of them may come through as it is.
func event(html []byte) string {
	html = bytes.ReplaceAll(html, []byte("\r\n"), []byte("\n"))
	html = bytes.ReplaceAll(html, []byte("\r"), []byte("\n"))
	var out bytes.Buffer
	for line := range bytes.Lines(html) {
		out.WriteString("data: ")
		out.Write(bytes.TrimSuffix(line, []byte("\n")))
		out.WriteByte('\n')
	}
	out.WriteByte('\n')
	return out.String()
}

func send(v *visit, text string) error {
	if _, err := v.Response().Write([]byte(text)); err != nil {
		return err
	}
	// Not by Echo's Response, whose Flush panics where there is none.
	return http.NewResponseController(v.Response().Writer).Flush()
}

// part makes the part of a page that a stream sends again.
func (p *Pages) part(file, name string, data any) ([]byte, error) {
	var out bytes.Buffer
	if err := p.templates.part(&out, file, name, data); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
