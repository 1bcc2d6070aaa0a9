package storageclient

import (
	"context"
	"encoding/json"
	"net/http"
)

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
	return c.writeSetting(ctx, send(http.MethodPost, circulationSettings.path, setting, http.StatusCreated))
}

// ReplaceSetting implements httpapi.CirculationSettings.
func (c *Client) ReplaceSetting(ctx context.Context, id string, setting json.RawMessage) error {
	r := getRecord(circulationSettings.path, id)
	r.method, r.body, r.want = http.MethodPut, setting, http.StatusNoContent
	_, err := c.writeSetting(ctx, r)
	return err
}

// DeleteSetting implements httpapi.CirculationSettings.
func (c *Client) DeleteSetting(ctx context.Context, id string) error {
	r := getRecord(circulationSettings.path, id)
	r.method, r.want = http.MethodDelete, http.StatusNoContent
	_, err := c.writeSetting(ctx, r)
	return err
}

// writeSetting makes a call that changes a setting. It is in force at once in this instance.
func (c *Client) writeSetting(ctx context.Context, r request) (json.RawMessage, error) {
	key, err := keyOf(ctx, circulationSettings.path+"?"+titleLevelSetting)
	if err != nil {
		return nil, err
	}
	defer c.cache.Drop(key)
	r.doing = "writing a circulation setting"
	return c.do(ctx, r)
}
