package web

import (
	"strconv"
	"sync"

	"github.com/labstack/echo/v4"
	fast "github.com/segmentio/encoding/json"
)

// jsonSerializer writes each JSON answer in one piece, with its length.
type jsonSerializer struct{ echo.DefaultJSONSerializer }

// answers are the buffers of answers that were written.
var answers = sync.Pool{New: func() any { return new([]byte) }}

// keptAnswer is the size in bytes of the largest buffer that is kept for the next answer.
const keptAnswer = 64 << 10

// answerFlags write a value as encoding/json does, without escapes for HTML. A json.RawMessage stays as it
// is, unchecked: it came from the database or from storage, so it is valid.
const answerFlags = fast.SortMapKeys | fast.TrustRawMessage

// Serialize implements echo.JSONSerializer.
func (s jsonSerializer) Serialize(c echo.Context, v any, indent string) error {
	if indent != "" {
		return s.DefaultJSONSerializer.Serialize(c, v, indent)
	}
	kept, _ := answers.Get().(*[]byte)
	body, err := fast.Append((*kept)[:0], v, answerFlags)
	if err != nil {
		return err
	}
	body = append(body, '\n')
	if cap(body) <= keptAnswer {
		*kept = body
		defer answers.Put(kept)
	}
	c.Response().Header().Set(echo.HeaderContentLength, strconv.Itoa(len(body)))
	_, err = c.Response().Write(body)
	return err
}
