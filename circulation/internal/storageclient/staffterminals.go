package storageclient

import (
	"context"
	"encoding/json"
	"net/http"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/library"
)

// maxListed is how many terminals or service points staff see.
const maxListed = 1000

// Terminals implements admin.TerminalStore.
func (c *Client) Terminals(ctx context.Context) ([]library.Terminal, error) {
	return listRecords[library.Terminal](ctx, c, terminals, "cql.allRecords=1 sortby name", maxListed)
}

// AllServicePoints implements admin.TerminalStore.
func (c *Client) AllServicePoints(ctx context.Context) ([]library.ServicePoint, error) {
	return listRecords[library.ServicePoint](ctx, c, servicePoints, "cql.allRecords=1 sortby name", maxListed)
}

// AddTerminal implements admin.TerminalStore.
func (c *Client) AddTerminal(ctx context.Context, t admin.NewTerminal) error {
	_, err := c.do(ctx, send("adding a terminal", http.MethodPost, terminals.path, t, http.StatusCreated))
	return err
}

// SetTerminalPassword implements admin.TerminalStore. It writes the record back as it was read, with the
// password and with the version, so that it undoes no change that was made meanwhile.
func (c *Client) SetTerminalPassword(ctx context.Context, id, password string) error {
	terminal, err := readRecord[map[string]json.RawMessage](ctx, c, terminals, id)
	if err != nil {
		return err
	}
	if terminal["password"], err = json.Marshal(password); err != nil {
		return err
	}
	_, err = c.do(ctx, changeRecord("setting a terminal's password", http.MethodPut, terminals.path, id, terminal))
	return err
}
