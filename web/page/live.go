package page

import (
	"bytes"
	"context"
	"html"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/pace"
	"checkoutlock/web/texts"
)

// Streams keep open pages up to date with server-sent events (WHATWG HTML, section 9.2).
// An event is HTML: parts of the page, rendered again by the same template.
type Streams struct {
	log     *slog.Logger
	places  chan struct{}   // one for each open stream
	running context.Context //nolint:containedctx // done once Stop is called
	stop    context.CancelFunc
}

const (
	// maxStreams bounds the open streams of a process, because each one polls storage.
	maxStreams = 32
	// quietTime is the longest silence of a stream, so that no proxy closes it as idle.
	quietTime = 15 * time.Second
)

// NewStreams returns streams that log why they show nothing new.
func NewStreams(log *slog.Logger) *Streams {
	s := &Streams{log: log, places: make(chan struct{}, maxStreams)}
	s.running, s.stop = context.WithCancel(context.Background())
	return s
}

// Stop ends all open streams, because they would delay the service's stop. Pages can still be
// loaded afterwards.
func (s *Streams) Stop() { s.stop() }

// Follow calls read at each interval and sends what it returns, if that has changed. A
// stream ends with its request, and the browser then opens the next one. So no stream
// outlives the permission for long. All streams end when the service stops.
//
// A page of another site gets no stream: its visitor's browser would sign in and take a
// place.
func (s *Streams) Follow(c echo.Context, r Reader, every time.Duration, read func() ([]byte, error)) error {
	if IsCrossSite(c.Request()) {
		return fault.New(fault.Forbidden, "Only the pages themselves may follow what is new")
	}
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	default:
		return c.String(http.StatusTooManyRequests, r.Say(texts.Text{Code: "live.tooMany"}))
	}
	ctx, cancel := context.WithCancel(c.Request().Context())
	defer cancel()
	defer context.AfterFunc(s.running, cancel)()
	c.SetRequest(c.Request().WithContext(ctx))
	s.write(c, r, every, read)
	return nil
}

// trouble is the part of a page that says that it is not up to date.
func trouble(r Reader) []byte {
	text := html.EscapeString(r.Say(texts.Text{Code: "live.trouble"}))
	return []byte(`<div data-live="trouble"><p class="strip">` + text + `</p></div>`)
}

// write writes a stream until its request ends or the browser leaves.
func (s *Streams) write(c echo.Context, r Reader, every time.Duration, read func() ([]byte, error)) {
	ctx := c.Request().Context()
	h := c.Response().Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // a proxy must not buffer events
	c.Response().WriteHeader(http.StatusOK)
	if c.Request().Method == http.MethodHead {
		return
	}
	if send(c, "retry: 1000\n\n") != nil {
		return
	}
	var last []byte
	var sent time.Time
	for range pace.Every(ctx, 0, every) {
		news, err := read()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			news = trouble(r)
		}
		var text string
		switch {
		case !bytes.Equal(news, last):
			if err != nil { // logged once, not for each read
				s.log.WarnContext(ctx, "page not kept up to date", "err", err)
			}
			text = formatEvent(news)
		case time.Since(sent) >= quietTime:
			text = ": nothing new\n\n"
		}
		if text != "" {
			if send(c, text) != nil {
				return // the browser left
			}
			last, sent = news, time.Now()
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

func send(c echo.Context, text string) error {
	if _, err := c.Response().Write([]byte(text)); err != nil {
		return err
	}
	// Echo's Response.Flush panics if its writer cannot flush; this returns an error.
	return http.NewResponseController(c.Response().Writer).Flush()
}
