package storageclient

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/schemas/fault"
)

// InstallDemo implements drill.Storage. It waits for the end of the installation. A gateway does not
// pass the call on. Fault: Unavailable if the installation takes longer than some 15 s.
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
	if err != nil || len(answer) == 0 {
		return err
	}
	var job struct {
		ID       string `json:"id"`
		Complete bool   `json:"complete"`
		Error    string `json:"error"`
	}
	if err := json.Unmarshal(answer, &job); err != nil {
		return fmt.Errorf("reading the installation of a tenant: %w", err)
	}
	r = get("waiting for a tenant", "/_/tenant/"+url.PathEscape(job.ID), url.Values{"wait": {"10000"}})
	r.route, r.timeout = "/_/tenant/{id}", callTimeout+lockMargin // longer than storage's wait
	if answer, err = c.do(ctx, r); err != nil {
		return err
	}
	if err := json.Unmarshal(answer, &job); err != nil {
		return fmt.Errorf("reading the installation of a tenant: %w", err)
	}
	if !job.Complete || job.Error != "" {
		cause := errors.New(cmp.Or(job.Error, "the job has not ended"))
		return fault.Wrap(cause, fault.Unavailable, "The library of the drill is still being made. Try again in a minute.")
	}
	return nil
}

// CountLocks implements drill.Storage.
func (c *Client) CountLocks(ctx context.Context) (int, error) {
	page, err := c.Locks(ctx, admin.LockFilter{Limit: 1})
	return page.TotalRecords, err
}
