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

// What the endpoints of one record share.

// fromPathID returns the handler of a function that takes the id of a record of a kind, which the path
// has.
func fromPathID[T any](kind string, f func(ctx context.Context, id string) (T, error)) func(echo.Context) (T, error) {
	return func(c echo.Context) (none T, err error) {
		id, err := readPathID(c, kind)
		if err != nil {
			return none, err
		}
		answer, err := f(c.Request().Context(), id)
		return answer, explainMissing(err, kind, id)
	}
}

// storeBody stores the body as a record below path, and answers where it is.
func storeBody[B ~[]byte](c echo.Context, path string, store func(context.Context, B) (json.RawMessage, error)) (json.RawMessage, error) {
	body, err := web.ReadUnique(c)
	if err != nil {
		return nil, err
	}
	stored, err := store(c.Request().Context(), B(body))
	if err != nil {
		return nil, err
	}
	var record struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(stored, &record); err != nil {
		return nil, fmt.Errorf("the record was stored, but storage's answer cannot be read: %w", err)
	}
	c.Response().Header().Set(echo.HeaderLocation, path+"/"+record.ID)
	return stored, nil
}

// replaceByID returns the handler of a function that writes the body over a record of a kind.
func replaceByID[B ~[]byte](kind string, replace func(ctx context.Context, id string, body B) error) func(echo.Context) error {
	return func(c echo.Context) error {
		id, err := readPathID(c, kind)
		if err != nil {
			return err
		}
		body, err := web.ReadUnique(c)
		if err != nil {
			return err
		}
		return explainMissing(replace(c.Request().Context(), id, B(body)), kind, id)
	}
}

// deleteByID returns the handler of a function that deletes a record of a kind.
func deleteByID(kind string, remove func(ctx context.Context, id string) error) func(echo.Context) error {
	return func(c echo.Context) error {
		id, err := readPathID(c, kind)
		if err != nil {
			return err
		}
		return explainMissing(remove(c.Request().Context(), id), kind, id)
	}
}

// deleteMatching returns the handler of a function that deletes what a query matches. It refuses two
// queries, because only one of them would choose what to delete.
func deleteMatching(f func(ctx context.Context, query string) error) func(echo.Context) error {
	return func(c echo.Context) error {
		q := web.QueryOf(c)
		if n := q.Count("query"); n > 1 {
			return fault.New(fault.Malformed, "Parameter query is there %d times; one is expected", n)
		}
		return f(c.Request().Context(), q.Text("query"))
	}
}

// readPathID returns the path's id in lower case. It must be a UUID in its usual form.
func readPathID(c echo.Context, of string) (string, error) {
	id := c.Param("id")
	if !schemas.IsUUID(id) {
		return "", fault.New(fault.Malformed, "The id of the %s must be a UUID, not %.100q", of, id)
	}
	return strings.ToLower(id), nil
}

// explainMissing names the record that a NotFound fault is about; other errors pass.
func explainMissing(err error, what, id string) error {
	if fault.Is(err, fault.NotFound) {
		return fault.Wrap(err, fault.NotFound, "There is no %s with the id %s", what, id)
	}
	return err
}
