package storageclient

import (
	"context"
	"encoding/json"
	"net/http"
)

const writingSetting = "writing a circulation setting"

// Settings implements httpapi.CirculationSettings.
func (c *Client) Settings(ctx context.Context, query string, offset, limit int) ([]json.RawMessage, int, error) {
	return c.listPage(ctx, circulationSettings, query, offset, limit)
}

// Setting implements httpapi.CirculationSettings.
func (c *Client) Setting(ctx context.Context, id string) (json.RawMessage, error) {
	return readRecord[json.RawMessage](ctx, c, circulationSettings, id)
}

// CreateSetting implements httpapi.CirculationSettings.
func (c *Client) CreateSetting(ctx context.Context, setting json.RawMessage) (json.RawMessage, error) {
	return c.writeCached(ctx, titleLevelPath, send(writingSetting, http.MethodPost, circulationSettings.path, setting, http.StatusCreated))
}

// ReplaceSetting implements httpapi.CirculationSettings.
func (c *Client) ReplaceSetting(ctx context.Context, id string, setting json.RawMessage) error {
	_, err := c.writeCached(ctx, titleLevelPath, changeRecord(writingSetting, http.MethodPut, circulationSettings.path, id, setting))
	return err
}

// DeleteSetting implements httpapi.CirculationSettings.
func (c *Client) DeleteSetting(ctx context.Context, id string) error {
	_, err := c.writeCached(ctx, titleLevelPath, changeRecord(writingSetting, http.MethodDelete, circulationSettings.path, id, nil))
	return err
}
