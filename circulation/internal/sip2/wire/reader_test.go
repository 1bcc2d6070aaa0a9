package wire_test

import (
	"errors"
	"io"
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

func TestReader_HalfALineIsNone(t *testing.T) {
	t.Parallel()
	if _, err := wire.NewReader(strings.NewReader("half")).Line(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want ErrUnexpectedEOF", err)
	}
}
