package storageclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas"
)

const (
	// batch is how many ids one query names: FOLIO's number.
	batch = 50
	// batchesAtOnce bounds the queries that one page of loans has under way.
	batchesAtOnce = 4
)

var requestPolicies = collection{path: "/request-policy-storage/request-policies", key: "requestPolicies"}

// Loans returns a page of stored loans and how many match the CQL query in all;
// an empty query matches every loan. Bad CQL is Malformed and says why.
func (c *Client) Loans(ctx context.Context, query string, offset, limit int) ([]json.RawMessage, int, error) {
	values := pageQuery(offset, limit)
	if query != "" {
		values.Set("query", query)
	}
	r := get(loans.path, values)
	body, err := c.do(ctx, r)
	if err != nil {
		return nil, 0, fmt.Errorf("listing loans: %w", err)
	}
	var page struct {
		Loans        []json.RawMessage
		TotalRecords int
	}
	if err := decode(r, body, &page); err != nil {
		return nil, 0, err
	}
	if page.Loans == nil {
		return nil, 0, unreadable(r, errors.New("it has no loans"))
	}
	return page.Loans, page.TotalRecords, nil
}

func pageQuery(offset, limit int) url.Values {
	return url.Values{"offset": {strconv.Itoa(offset)}, "limit": {strconv.Itoa(limit)}}
}

func setUnlessEmpty(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}

// Users returns those of the patrons that exist, in any order.
func (c *Client) Users(ctx context.Context, ids []string) ([]checkout.User, error) {
	return many[checkout.User](ctx, c, users, ids)
}

// Items returns those of the items that exist, in any order.
func (c *Client) Items(ctx context.Context, ids []string) ([]checkout.Item, error) {
	return many[checkout.Item](ctx, c, items, ids)
}

// HoldingsRecords returns those of the holdings that exist, in any order.
func (c *Client) HoldingsRecords(ctx context.Context, ids []string) ([]checkout.Holdings, error) {
	return many[checkout.Holdings](ctx, c, holdings, ids)
}

// Instances returns those of the instances that exist, in any order.
func (c *Client) Instances(ctx context.Context, ids []string) ([]checkout.Instance, error) {
	return many[checkout.Instance](ctx, c, instances, ids)
}

// LoanPolicies returns the ids of those of the policies that exist.
func (c *Client) LoanPolicies(ctx context.Context, ids []string) ([]string, error) {
	return c.existing(ctx, loanPolicies, ids)
}

// RequestPolicies returns the ids of those of the policies that exist.
func (c *Client) RequestPolicies(ctx context.Context, ids []string) ([]string, error) {
	return c.existing(ctx, requestPolicies, ids)
}

func (c *Client) existing(ctx context.Context, from collection, ids []string) ([]string, error) {
	found, err := many[checkout.Named](ctx, c, from, ids)
	existing := make([]string, len(found))
	for i, p := range found {
		existing[i] = p.ID
	}
	return existing, err
}

// many returns records by id, a batch per query. What is no UUID is the id of no
// record.
func many[T any](ctx context.Context, c *Client, from collection, ids []string) ([]T, error) {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !schemas.IsUUID(id) })
	batches := slices.Collect(slices.Chunk(ids, batch))
	found := make([][]T, len(batches))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(batchesAtOnce)
	for i, some := range batches {
		g.Go(func() (err error) {
			found[i], err = list[T](ctx, c, from, anyOf("id", some), len(some))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(found...), nil
}
