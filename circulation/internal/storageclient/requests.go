package storageclient

import (
	"context"
	"encoding/json"
	"fmt"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

var (
	requests            = collection{path: "/request-storage/requests", key: "requests"}
	circulationSettings = collection{path: "/circulation-settings-storage/circulation-settings", key: "circulationSettings"}
)

const (
	// titleLevelSetting is the setting that switches requests for titles on (FOLIO).
	titleLevelSetting = "generalTlr"
	// maxQueue is the longest queue that is read. Positions come first, so that
	// what is cut off waits for long.
	maxQueue = 10_000
)

// TitleLevelRequests implements checkout.Library. A tenant without the setting,
// or whose setting does not say, has them switched off. One that says neither
// true nor false is a fault of stored configuration.
func (c *Client) TitleLevelRequests(ctx context.Context) (bool, error) {
	key, err := keyFor(ctx, circulationSettings.path+"?"+titleLevelSetting)
	if err != nil {
		return false, err
	}
	on, err := c.cache.get(ctx, key, func(ctx context.Context, _ any) (any, error) {
		type setting struct {
			Value json.RawMessage `json:"value"`
		}
		stored, err := first[setting](ctx, c, circulationSettings, equals("name", titleLevelSetting))
		if fault.Is(err, fault.NotFound) {
			return false, nil
		}
		if err != nil {
			return nil, err
		}
		return enabled(stored.Value)
	})
	if err != nil {
		return false, fmt.Errorf("reading whether titles are requested: %w", err)
	}
	return on.(bool), nil
}

func enabled(value json.RawMessage) (bool, error) {
	var v struct {
		On bool `json:"titleLevelRequestsFeatureEnabled"`
	}
	if err := json.Unmarshal(value, &v); err != nil {
		return false, fault.Wrap(err, fault.Internal,
			"The circulation setting %s cannot be read: titleLevelRequestsFeatureEnabled in its value must be true or false", titleLevelSetting)
	}
	return v.On, nil
}

// ItemRequests implements checkout.Library.
func (c *Client) ItemRequests(ctx context.Context, itemID string) ([]schemas.QueuedRequest, error) {
	return openRequests[schemas.QueuedRequest](ctx, c, equals("itemId", itemID))
}

// TitleRequests implements checkout.Library.
func (c *Client) TitleRequests(ctx context.Context, instanceID string) ([]schemas.QueuedRequest, error) {
	return openRequests[schemas.QueuedRequest](ctx, c, equals("instanceId", instanceID))
}

func openRequests[T any](ctx context.Context, c *Client, of string) ([]T, error) {
	query := of + " and " + anyOf("status", schemas.OpenRequestStatuses()) + " sortBy position/sort.ascending"
	queue, err := list[T](ctx, c, requests, query, maxQueue)
	if err != nil {
		return nil, fmt.Errorf("reading the queue of requests: %w", err)
	}
	return queue, nil
}
