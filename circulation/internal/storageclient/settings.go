package storageclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"checkoutlock/schemas"
)

const settingsPath = "/check-out-lock-settings-storage"

// State implements settings.Storage.
func (c *Client) State(ctx context.Context) (schemas.LockSettingsState, error) {
	return c.settingsState(ctx, get(settingsPath, nil))
}

// Put implements settings.Storage.
func (c *Client) Put(ctx context.Context, change schemas.LockSettingsChange) (schemas.LockSettingsState, error) {
	return c.settingsState(ctx, request{
		method: http.MethodPut, route: settingsPath, path: settingsPath, want: http.StatusOK, body: change,
	})
}

// Announce implements settings.Storage.
func (c *Client) Announce(ctx context.Context, e schemas.LockEnvironment) (schemas.LockSettingsState, error) {
	const path = settingsPath + "/environment"
	return c.settingsState(ctx, request{method: http.MethodPost, route: path, path: path, want: http.StatusOK, body: e})
}

func (c *Client) settingsState(ctx context.Context, r request) (schemas.LockSettingsState, error) {
	var state schemas.LockSettingsState
	body, err := c.do(ctx, r)
	if err != nil {
		return state, fmt.Errorf("lock settings: %w", err)
	}
	if err := decode(r, body, &state); err != nil {
		return state, err
	}
	if state.Version == "" {
		return state, unreadable(r, errors.New("it has no version"))
	}
	return state, nil
}
