package web

import (
	"net/http"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
	"github.com/labstack/echo/v4"
)

// minCompressed is the least size in bytes of an answer that is compressed. A smaller one fits in
// one packet anyway.
const minCompressed = 1400

// newCompression returns a middleware that compresses large answers with gzip, for clients that
// accept it. It takes a compressor, a megabyte, only once an answer is large.
func newCompression() echo.MiddlewareFunc {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(minCompressed), gzhttp.CompressionLevel(gzip.BestSpeed),
		gzhttp.EnableZstd(false))
	if err != nil {
		panic(err) // only for a level that does not exist
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) (err error) {
			response, request := c.Response(), *c.Request()
			request.Method = http.MethodGet // an answer to HEAD has the headers of that to GET
			direct := response.Writer
			defer func() { response.Writer = direct }()
			wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				response.Writer = w
				err = next(c)
			})).ServeHTTP(direct, &request)
			return err
		}
	}
}
