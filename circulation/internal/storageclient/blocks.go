package storageclient

import (
	"context"
	"fmt"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas/fault"
)

// What may keep a patron from borrowing, and lets another borrow for them (FOLIO's
// paths and keys).
var (
	manualBlocks    = collection{path: "/manualblocks", key: "manualblocks"}
	automatedBlocks = collection{path: "/automated-patron-blocks", key: "automatedPatronBlocks"}
	proxies         = collection{path: "/proxiesfor", key: "proxiesFor"}
)

// maxAboutPatron is the most blocks, and proxy relations, of one patron that are
// read.
const maxAboutPatron = 1000

// ManualBlocks implements checkout.Library.
func (c *Client) ManualBlocks(ctx context.Context, userID string) ([]checkout.ManualBlock, error) {
	blocks, err := list[checkout.ManualBlock](ctx, c, manualBlocks, equals("userId", userID), maxAboutPatron)
	if err != nil {
		return nil, fmt.Errorf("reading the patron's manual blocks: %w", err)
	}
	return blocks, nil
}

// AutomatedBlocks implements checkout.Library. A patron without a list of blocks
// has none.
func (c *Client) AutomatedBlocks(ctx context.Context, userID string) ([]checkout.AutomatedBlock, error) {
	type answer struct {
		Blocks []checkout.AutomatedBlock `json:"automatedPatronBlocks"`
	}
	stored, err := one[answer](ctx, c, automatedBlocks, userID)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, fmt.Errorf("reading the patron's automated blocks: %w", err)
	}
	return stored.Blocks, nil
}

// ProxyRelations implements checkout.Library.
func (c *Client) ProxyRelations(ctx context.Context, proxyID, sponsorID string) ([]checkout.ProxyRelation, error) {
	query := equals("proxyUserId", proxyID) + " and " + equals("userId", sponsorID)
	relations, err := list[checkout.ProxyRelation](ctx, c, proxies, query, maxAboutPatron)
	if err != nil {
		return nil, fmt.Errorf("reading who the patron is a proxy for: %w", err)
	}
	return relations, nil
}
