package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

const (
	// MaxLine is the longest message in bytes.
	MaxLine = 8192
	// readBuffer is what an idle connection keeps.
	readBuffer = 512
)

// ErrTooLong is a message of more than MaxLine bytes. The rest of the connection cannot be read.
var ErrTooLong = errors.New("message too long")

// Reader cuts a stream into messages. A message ends with CR, LF, or both. A Reader keeps at most
// MaxLine bytes.
type Reader struct {
	in *bufio.Reader
}

// NewReader returns a Reader of what a connection sends.
func NewReader(in io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(in, readBuffer)} }

// Await returns when a message has begun. It skips empty lines.
func (r *Reader) Await() error {
	for {
		b, err := r.in.ReadByte()
		if err != nil {
			return err //nolint:wrapcheck // the connection's own: io.EOF or a time-out
		}
		if !endsLine(b) {
			return r.in.UnreadByte() //nolint:wrapcheck // it follows a ReadByte
		}
	}
}

// Line returns the next message without its end. It skips empty lines. A message that the end
// of the stream cuts off is io.ErrUnexpectedEOF.
func (r *Reader) Line() ([]byte, error) {
	if err := r.Await(); err != nil {
		return nil, err
	}
	var line []byte
	for {
		b, err := r.in.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err //nolint:wrapcheck // the connection's own: a time-out
		case endsLine(b):
			return line, nil
		case len(line) == MaxLine:
			return nil, ErrTooLong
		}
		line = append(line, b)
	}
}

func endsLine(b byte) bool { return b == '\r' || b == '\n' }

// peek is bufio's Peek. It refuses more than the buffer holds, after which bufio would return a
// time-out again at the next read.
func (r *Reader) peek(n int) ([]byte, error) {
	if n > readBuffer {
		return nil, bufio.ErrBufferFull
	}
	return r.in.Peek(n) //nolint:wrapcheck // it is for Skip alone
}

// Skip drops the next message if it has come already and is equal to line. It leaves a message that is
// longer than the buffer of an idle connection. Set a deadline that is near, as Skip waits for it.
func (r *Reader) Skip(line []byte) bool {
	skip := 0
	for {
		next, err := r.peek(skip + 1)
		if err != nil || !endsLine(next[skip]) {
			break
		}
		skip++
	}
	next, err := r.peek(skip + len(line) + 1)
	if err != nil || !bytes.Equal(next[skip:skip+len(line)], line) || !endsLine(next[skip+len(line)]) {
		return false
	}
	_, err = r.in.Discard(len(next))
	return err == nil
}
