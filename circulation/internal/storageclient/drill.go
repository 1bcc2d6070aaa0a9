package storageclient

import (
	"context"
	"net/http"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/schemas/fault"
)

// InstallDemo implements drill.Storage. Storage waits some seconds for the end of an installation. A
// gateway does not pass the call on. Fault: Unavailable if the installation takes longer.
func (c *Client) InstallDemo(ctx context.Context) error {
	type parameter struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	}
	body := struct {
		ModuleTo   string      `json:"module_to"`
		Parameters []parameter `json:"parameters"`
	}{"circulation-storage", []parameter{{"loadReference", "true"}, {"loadSample", "true"}}}
	r := send("installing a tenant", http.MethodPost, "/_/tenant", body, http.StatusNoContent)
	r.or = http.StatusCreated
	answer, err := c.do(ctx, r)
	if err == nil && len(answer) > 0 {
		err = fault.New(fault.Unavailable, "The library of the drill is still being made. Try again in a minute.")
	}
	return err
}

// CountLocks implements drill.Storage.
func (c *Client) CountLocks(ctx context.Context) (int, error) {
	page, err := c.Locks(ctx, admin.LockFilter{Limit: 1})
	return page.TotalRecords, err
}
