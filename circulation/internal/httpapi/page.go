package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// maxListed is the most loans or requests in one answer, which is made in memory.
// FOLIO's clients send any limit, so what counts is how many there are.
const maxListed = 10_000

// listFunc returns a page of stored records, and how many match in all.
type listFunc func(ctx context.Context, query string, offset, limit int) (found []json.RawMessage, total int, err error)

// listPage returns the part of a list that web.FolioPage asks for. Fault: Invalid when
// that has more than maxListed records.
func listPage(c echo.Context, list listFunc) ([]json.RawMessage, int, error) {
	q := web.QueryOf(c)
	limit := q.Integer("limit")
	found, total, err := list(c.Request().Context(), q.Text("query"), q.Integer("offset"), min(limit, maxListed+1))
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

// readPathID returns the path's id in lower case. It must be a UUID in its usual form.
func readPathID(c echo.Context, of string) (string, error) {
	id := c.Param("id")
	if !schemas.IsUUID(id) {
		return "", fault.New(fault.Malformed, "The id of the %s must be a UUID, not %.100q", of, id)
	}
	return strings.ToLower(id), nil
}
