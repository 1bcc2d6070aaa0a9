package storageclient

import (
	"context"
	"net/http"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
)

// Terminals implements admin.TerminalStore.
func (c *Client) Terminals(ctx context.Context) ([]library.Terminal, error) {
	return listRecords[library.Terminal](ctx, c, terminals, "cql.allRecords=1 sortby name", schemas.MaxListedTerminals)
}

// AddTerminal implements admin.TerminalStore.
func (c *Client) AddTerminal(ctx context.Context, t admin.NewTerminal) error {
	return c.run(ctx, send("adding a terminal", http.MethodPost, terminals.path, t, http.StatusCreated))
}

// SetTerminalPassword implements admin.TerminalStore.
func (c *Client) SetTerminalPassword(ctx context.Context, id, password string) error {
	return c.changeTerminal(ctx, "setting a terminal's password", id, nil, map[string]any{"password": password})
}

// ChangeTerminal implements admin.TerminalStore.
func (c *Client) ChangeTerminal(ctx context.Context, id string, change admin.TerminalChange) error {
	properties := map[string]any{"name": change.Name, "enabled": change.Enabled}
	for name, value := range map[string]string{
		"servicePointId": change.ServicePointID, "institution": change.Institution, "language": change.Language,
		"characterSet": change.CharacterSet, "lineEnd": change.LineEnd,
	} {
		properties[name] = nil
		if value != "" {
			properties[name] = value
		}
	}
	return c.changeTerminal(ctx, "changing a terminal", id, &change.Version, properties)
}

// changeTerminal writes the record back as it was read, with other properties; nil removes one. Storage
// compares the version, so that this undoes no change that was made meanwhile. version is the one that
// was seen before, nil for that of the record.
func (c *Client) changeTerminal(ctx context.Context, doing, id string, version *int, properties map[string]any) error {
	terminal, err := readRecord[map[string]any](ctx, c, terminals, id)
	if err != nil {
		return err
	}
	for name, value := range properties {
		terminal[name] = value
		if value == nil {
			delete(terminal, name)
		}
	}
	if version != nil {
		terminal["_version"] = *version
	}
	return c.run(ctx, changeRecord(doing, http.MethodPut, terminals.path, id, terminal))
}
