package storageclient

import (
	"context"

	"checkoutlock/circulation/internal/checkout"
)

// PickupPoint implements checkout.ReturnLibrary.
func (c *Client) PickupPoint(ctx context.Context, id string) (checkout.PickupPoint, error) {
	return one[checkout.PickupPoint](ctx, c, servicePoints, id)
}
