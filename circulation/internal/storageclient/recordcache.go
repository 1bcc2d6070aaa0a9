package storageclient

import (
	"context"
	"encoding/json"
	"time"

	"checkoutlock/schemas/okapi"
)

const (
	// cacheAge is how old a reference record may be that no version confirms.
	cacheAge = time.Second
	// cacheSize bounds the number of records kept, over all tenants.
	cacheSize = 4096
)

// referenceVersion changes with a tenant's reference records.
type referenceVersion struct {
	version string
	read    time.Time // when the call began that returned it
}

// cacheKey names a reference record.
type cacheKey struct{ tenant, path string }

// noteVersion keeps the version of the tenant's reference records, unless it knows one of a call that
// began later. So records that a version confirms are as fresh as that call.
func (c *Client) noteVersion(ctx context.Context, version string, read time.Time) {
	tenant, err := okapi.TenantFrom(ctx)
	if err != nil {
		return // no call is made without a tenant
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.versions[tenant.String()].read.Before(read) {
		c.versions[tenant.String()] = referenceVersion{version, read}
	}
}

// keepRecord is readRecord for reference records, which change rarely. The client keeps them for a
// second, and on while Snapshot finds them unchanged: their tables renew reference_version, but not
// for a new record, so nothing may keep that there is none.
func keepRecord[T any](ctx context.Context, c *Client, from collection, id string, parse func([]byte) (T, error)) (T, error) {
	return getCached(ctx, c, from.path+"/"+id, func(ctx context.Context, _ any) (T, error) {
		return fetchRecord(ctx, c, from, id, parse)
	})
}

// getCached returns the tenant's value of a path from the cache. A path has values of one type.
func getCached[T any](ctx context.Context, c *Client, path string, fetch func(ctx context.Context, old any) (T, error)) (T, error) {
	var none T
	key, err := keyOf(ctx, path)
	if err != nil {
		return none, err
	}
	value, err := c.cache.Get(ctx, key, func(ctx context.Context, old any) (any, error) { return fetch(ctx, old) })
	if err != nil {
		return none, err
	}
	return value.(T), nil
}

// writeCached makes a call that changes the tenant's value of a path. The change is in force at once
// in this instance.
func (c *Client) writeCached(ctx context.Context, path string, r request) (json.RawMessage, error) {
	key, err := keyOf(ctx, path)
	if err != nil {
		return nil, err
	}
	defer c.cache.Drop(key)
	return c.do(ctx, r)
}

func keyOf(ctx context.Context, path string) (cacheKey, error) {
	id, err := okapi.TenantFrom(ctx)
	return cacheKey{tenant: id.String(), path: path}, err
}
