package staff

import (
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/labstack/echo/v4"
)

// FindSpan is findSpan for tests, which cannot change the time zone of the process.
var FindSpan = findSpan

// ReadClock reads a time of day, seen at the moment and in the zone of the second argument.
func ReadClock(typed string, now time.Time) (time.Time, bool) {
	return (&visit{}).readClock(&field{Value: typed}, now)
}

// LinkYesterday is the address of yesterday's check-outs, for a reader at that time in its zone.
func LinkYesterday(now time.Time) string {
	c := echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/staff/diku/check-outs", nil), nil)
	return (&visit{c: c}).linkDays(now)[1].Path
}
