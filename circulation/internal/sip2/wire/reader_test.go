package wire_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"checkoutlock/circulation/internal/sip2/wire"
)

func TestReader_CutsLines(t *testing.T) {
	t.Parallel()
	const stream = "one\r\ntwo\rthree\n\r\r\n\nfour\r\n\r"
	for name, in := range map[string]io.Reader{
		"in one piece":  strings.NewReader(stream),
		"byte for byte": iotest.OneByteReader(strings.NewReader(stream)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := wire.NewReader(in)
			for _, want := range []string{"one", "two", "three", "four"} {
				if got, err := r.Line(); string(got) != want || err != nil {
					t.Errorf("got %q, %v, want %q", got, err, want)
				}
			}
			if _, err := r.Line(); !errors.Is(err, io.EOF) {
				t.Errorf("got %v, want EOF", err)
			}
		})
	}
}

func TestReader_BoundsLines(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("x", wire.MaxLine)
	r := wire.NewReader(strings.NewReader(longest + "\r" + longest + "x\r"))
	if got, err := r.Line(); string(got) != longest || err != nil {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if _, err := r.Line(); !errors.Is(err, wire.ErrTooLong) {
		t.Errorf("got %v, want ErrTooLong", err)
	}
}

// deadlineReader is a connection: without data it returns a time-out.
type deadlineReader struct{ in bytes.Buffer }

func (r *deadlineReader) Read(p []byte) (int, error) {
	if r.in.Len() == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	return r.in.Read(p)
}

func TestReader_SkipsARepeat(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		message, then string
		want          bool
	}{
		"that has come":          {message: "first", then: "\n\rfirst\r", want: true},
		"not another message":    {message: "first", then: "second\r"},
		"not a longer message":   {message: "first", then: "first one\r"},
		"not before it has come": {message: "first", then: "fir"},
		"none":                   {message: "first"},
		"none of a long one":     {message: strings.Repeat("x", 600)},
		"none of line ends":      {message: "first", then: strings.Repeat("\r", 600)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var in deadlineReader
			r := wire.NewReader(&in)
			in.in.WriteString(tt.message + "\r")
			if got, err := r.Line(); string(got) != tt.message || err != nil {
				t.Fatalf("got %q, %v", got, err)
			}
			in.in.WriteString(tt.then)
			if got := r.Skip([]byte(tt.message)); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
			in.in.WriteString("\rlast\r")
			for got := ""; got != "last"; {
				line, err := r.Line()
				if err != nil {
					t.Fatalf("the next message: %v", err)
				}
				got = string(line)
			}
		})
	}
}

func TestReader_HalfALineIsNone(t *testing.T) {
	t.Parallel()
	if _, err := wire.NewReader(strings.NewReader("half")).Line(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want ErrUnexpectedEOF", err)
	}
}
