package sunbird

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"
)

const contentType = "application/json; charset=utf-8"

// failure is a refusal. Its code and its text are the published service's, and clients compare
// them.
type failure struct {
	status int
	code   string
	text   string
}

func (f failure) Error() string { return f.text }

// envelope is every answer.
type envelope struct {
	ID           string         `json:"id"`
	Version      string         `json:"ver"`
	Time         string         `json:"ts"`
	Params       envelopeParams `json:"params"`
	ResponseCode string         `json:"responseCode"`
	Result       any            `json:"result"`
}

type envelopeParams struct {
	ResponseID string  `json:"resmsgid"`
	MessageID  *string `json:"msgid"`
	Status     string  `json:"status"`
	Code       *string `json:"err"`
	Text       *string `json:"errmsg"`
}

func newEnvelope(id string) envelope {
	return envelope{
		ID: id, Version: "1.0", Time: formatTime(time.Now()), ResponseCode: "OK", Result: struct{}{},
		Params: envelopeParams{ResponseID: uuid.NewString(), Status: "successful"},
	}
}

// fail turns the envelope into a refusal.
func (e *envelope) fail(f failure) {
	e.Params.Status, e.Params.Code, e.Params.Text = "failed", &f.code, &f.text
	switch {
	case f.status == http.StatusUnauthorized:
		e.ResponseCode = "UNAUTHORIZED_ACCESS"
	case f.status >= http.StatusInternalServerError:
		e.ResponseCode = "SERVER_ERROR"
	default:
		e.ResponseCode = "CLIENT_ERROR"
	}
}

func (e *envelope) write(w http.ResponseWriter, status int) error {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	return json.NewEncoder(w).Encode(e)
}

// streamed is a result that is sent while it is written.
type streamed func(io.Writer) error

// streamBuffer is how much of an answer is written before any of it is sent.
const streamBuffer = 32 << 10

// stream writes the envelope with a result, until ctx's deadline. It reports whether anything was sent.
func (e *envelope) stream(ctx context.Context, w http.ResponseWriter, result streamed) (sent bool, err error) {
	head, err := json.Marshal(e)
	if err != nil {
		return false, err
	}
	client := &sentWriter{w: w}
	client.deadline, _ = ctx.Deadline()
	buffer := bufio.NewWriterSize(client, streamBuffer)
	_, _ = buffer.Write(bytes.TrimSuffix(head, []byte("{}}"))) // Flush returns its error
	if err = result(buffer); err == nil {
		_, _ = buffer.WriteString("}\n")
		err = buffer.Flush()
	}
	return client.sent, err
}

// sentWriter notes whether it has written. A client that does not read keeps it until the deadline.
type sentWriter struct {
	w        http.ResponseWriter
	deadline time.Time
	sent     bool
}

func (s *sentWriter) Write(p []byte) (int, error) {
	s.sent = true
	s.w.Header().Set("Content-Type", contentType)
	_ = http.NewResponseController(s.w).SetWriteDeadline(s.deadline) // it fails if the client has left
	return s.w.Write(p)
}

// formatTime writes a time as clients parse it.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
