package httpapi

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// maxListed is the most loans or requests in one answer, which is made in memory.
// FOLIO's clients send any limit, so what counts is how many there are.
const maxListed = 10_000

// pageOf reads which part of a list is asked for: the first 10 by default, as in
// FOLIO.
func pageOf(c echo.Context) (offset, limit int, err error) {
	if offset, err = web.QueryInt(c, "offset", 0, 0, math.MaxInt32); err != nil {
		return 0, 0, err
	}
	limit, err = web.QueryInt(c, "limit", 10, 0, math.MaxInt32)
	return offset, limit, err
}

// listFunc returns a page of stored records, and how many match in all.
type listFunc func(offset, limit int) (found []json.RawMessage, total int, err error)

// listPage returns the part of a list that is asked for. Fault: Invalid when that
// has more than maxListed records.
func listPage(c echo.Context, list listFunc) ([]json.RawMessage, int, error) {
	offset, limit, err := pageOf(c)
	if err != nil {
		return nil, 0, err
	}
	found, total, err := list(offset, min(limit, maxListed+1))
	if err != nil {
		return nil, 0, err
	}
	if len(found) > maxListed {
		return nil, 0, fault.Validation(fault.Refusal(string(fault.Invalid),
			fmt.Sprintf("limit must be at most %d here, since more records match; offset leads to the next ones", maxListed),
			fault.Param("limit", fmt.Sprint(limit))))
	}
	return found, total, nil
}
