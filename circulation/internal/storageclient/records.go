package storageclient

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
)

const (
	// batch is how many ids one query names: FOLIO's number.
	batch = 50
	// batchesAtOnce bounds the queries that one page of loans has under way.
	batchesAtOnce = 4
)

// collection is the place of the records of one type.
type collection struct {
	path, key string
	settles   bool // see request
}

// findRecord returns the record that matches query. Fault: NotFound if there is none.
func findRecord[T any](ctx context.Context, c *Client, from collection, query string) (T, error) {
	var none T
	found, err := listRecords[T](ctx, c, from, query, 1)
	switch {
	case err != nil:
		return none, err
	case len(found) == 0:
		return none, fault.New(fault.NotFound, "No record in %s matches", from.path)
	}
	return found[0], nil
}

// listRecords returns at most limit records that match query.
func listRecords[T any](ctx context.Context, c *Client, from collection, query string, limit int) ([]T, error) {
	records, _, err := readList[T](ctx, c, get("", from.path, url.Values{"query": {query}, "limit": {strconv.Itoa(limit)}}), from)
	return records, err
}

// fetchIDs returns the ids of at most limit records that match query.
func fetchIDs(ctx context.Context, c *Client, from collection, query string, limit int) ([]string, error) {
	found, err := listRecords[library.Named](ctx, c, from, query, limit)
	return idsOf(found), err
}

func idsOf(found []library.Named) []string {
	return convert.All(found, func(record library.Named) string { return record.ID })
}

// listPage returns a page of records and how many match the CQL query in all; an empty query
// matches every record. Fault: Malformed, with the reason, for bad CQL.
func listPage[T any](ctx context.Context, c *Client, from collection, query string, offset, limit int) ([]T, int, error) {
	values := pageQuery(offset, limit)
	setUnlessEmpty(values, "query", query)
	return readList[T](ctx, c, get("listing "+from.key, from.path, values), from)
}

// readList makes the call for a list, and returns its records and the total, 0 if that is missing.
func readList[T any](ctx context.Context, c *Client, r request, from collection) (records []T, total int, err error) {
	envelope, err := call(ctx, c, r, from.key, func(envelope map[string]json.RawMessage) bool {
		list, ok := envelope[from.key]
		return ok && string(list) != "null"
	})
	if err == nil {
		err = decode(r, envelope[from.key], &records)
	}
	if raw, ok := envelope["totalRecords"]; ok && err == nil {
		err = decode(r, raw, &total)
	}
	return records, total, err
}

func pageQuery(offset, limit int) url.Values {
	return url.Values{"offset": {strconv.Itoa(offset)}, "limit": {strconv.Itoa(limit)}}
}

func setUnlessEmpty(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}

// readRecord returns a record by id. Rules and records may name it by any text; only a UUID is the
// id of a record.
func readRecord[T any](ctx context.Context, c *Client, from collection, id string) (T, error) {
	return fetchRecord(ctx, c, from, id, parseRecord[T])
}

func fetchRecord[T any](ctx context.Context, c *Client, from collection, id string, parse func([]byte) (T, error)) (T, error) {
	var none T
	if !schemas.IsUUID(id) {
		return none, fault.New(fault.NotFound, "No record in %s has the id %q", from.path, id)
	}
	r := getRecord("", from.path, id)
	r.settles = from.settles
	body, err := c.do(ctx, r)
	if err != nil {
		return none, err
	}
	record, err := parse(body)
	if err != nil {
		return none, unreadable(r, err)
	}
	return record, nil
}

func parseRecord[T any](body []byte) (T, error) {
	var record T
	err := json.Unmarshal(body, &record)
	return record, err
}

// listByID returns records by id, a batch per query. Only a UUID is the id of a record.
func listByID[T any](ctx context.Context, c *Client, from collection, ids []string) ([]T, error) {
	return listByIndex[T](ctx, c, from, "id", ids)
}

// listByIndex returns the records whose index is one of the ids. At most one record has each id.
func listByIndex[T any](ctx context.Context, c *Client, from collection, index string, ids []string) ([]T, error) {
	return listBatches[T](ctx, c, from, ids, 0, func(some []string) string { return anyOf(index, some) })
}

// listBatches returns the records that match the queries of all batches of ids, at most limit of each
// batch; 0 means one for each id.
func listBatches[T any](ctx context.Context, c *Client, from collection, ids []string, limit int, queryFor func(some []string) string) ([]T, error) {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !schemas.IsUUID(id) })
	batches := slices.Collect(slices.Chunk(ids, batch))
	found := make([][]T, len(batches))
	g, ctx := library.NewCalls(ctx)
	g.SetLimit(batchesAtOnce)
	for i, some := range batches {
		g.Go(func() (err error) {
			found[i], err = listRecords[T](ctx, c, from, queryFor(some), cmp.Or(limit, len(some)))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(found...), nil
}

// cqlEscaper escapes what has a meaning inside a quoted CQL term: the quote and
// the backslash, the wildcards * and ?, and the anchor ^ (CQL 1.2, "Masking
// rules").
var cqlEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `*`, `\*`, `?`, `\?`, `^`, `\^`)

// quoteTerm returns the CQL term that matches exactly value.
func quoteTerm(value string) string { return `"` + cqlEscaper.Replace(value) + `"` }

// equals is the clause that index is value.
func equals(index, value string) string { return index + "==" + quoteTerm(value) }

// anyOf is the clause that index is one of values, of which there is at least one.
func anyOf(index string, values []string) string {
	return index + "==(" + strings.Join(convert.All(values, quoteTerm), " or ") + ")"
}
