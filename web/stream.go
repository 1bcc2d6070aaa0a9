package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/labstack/echo/v4"
)

// streamBuffer is how much of an answer is written before any of it is sent.
const streamBuffer = 32 << 10

// StreamJSON answers 200 with the JSON that write writes, and sends it while it is
// written. An error of write is answered as any other while nothing was sent. Later
// it cuts the connection, so that the client does not mistake a part for the whole.
func StreamJSON(c echo.Context, write func(io.Writer) error) error {
	buffer := bufio.NewWriterSize(clientWriter{c.Response()}, streamBuffer)
	err := write(buffer)
	if err == nil {
		err = buffer.Flush()
	}
	if err != nil && c.Response().Committed {
		return &cutOffError{err}
	}
	return err
}

// clientWriter writes to a client. Its error means that the client left or reads too
// slowly.
type clientWriter struct{ response *echo.Response }

func (w clientWriter) Write(p []byte) (int, error) {
	w.response.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	n, err := w.response.Write(p)
	if err != nil {
		err = fmt.Errorf("sending the answer: %w: %w", context.Canceled, err)
	}
	return n, err
}

// cutOffError ended an answer whose status and first part were sent.
type cutOffError struct{ cause error }

func (e *cutOffError) Error() string { return "the answer was cut off: " + e.cause.Error() }
func (e *cutOffError) Unwrap() error { return e.cause }

// cutOff ends the connection when err ended an answer half-way. Without that the
// client would see the end of a whole one. In HTTP/1.0 it would see that even so,
// unless the connection is reset.
func cutOff(c echo.Context, err error) {
	if err == nil || !errors.As(err, new(*cutOffError)) {
		return
	}
	if !c.Request().ProtoAtLeast(1, 1) {
		if conn, _, err := c.Response().Hijack(); err == nil {
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			_ = conn.Close()
		}
	}
	panic(http.ErrAbortHandler)
}
