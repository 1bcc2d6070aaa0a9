package storageclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web/texts"
)

// selfCheckTexts is the circulation setting with a library's own texts for its machines.
const selfCheckTexts = "selfCheckTexts"

// PatronLoans implements desk.Library.
func (c *Client) PatronLoans(ctx context.Context, userID string, limit int) ([]json.RawMessage, int, error) {
	return listPage[json.RawMessage](ctx, c, loans, equals("userId", userID)+" and "+equals("status.name", "Open"), 0, limit)
}

// PatronRequests implements desk.Library.
func (c *Client) PatronRequests(ctx context.Context, userID string, limit int) ([]json.RawMessage, int, error) {
	return listPage[json.RawMessage](ctx, c, requests, equals("requesterId", userID)+" and "+anyOf("status", schemas.OpenRequestStatuses()), 0, limit)
}

// UsersBy implements desk.Library.
func (c *Client) UsersBy(ctx context.Context, index, value string) ([]library.User, error) {
	return listRecords[library.User](ctx, c, users, equals(index, value), 2)
}

// ownTexts are a library's catalogues, with the setting that they were made of.
type ownTexts struct {
	setting   json.RawMessage
	catalogue *texts.Catalogue
	err       error
}

// Texts implements desk.Library. They may be two seconds old. A setting is read once, however often it
// is fetched; the error is that of texts.Replace.
func (c *Client) Texts(ctx context.Context) (*texts.Catalogue, error) {
	own, err := getCached(ctx, c, circulationSettings.path+"?"+selfCheckTexts, func(ctx context.Context, old any) (ownTexts, error) {
		setting, exists, err := fault.Found(c.SettingValue(ctx, selfCheckTexts))
		if err != nil {
			return ownTexts{}, err
		}
		if !exists {
			return ownTexts{catalogue: texts.Delivered()}, nil
		}
		if old, ok := old.(ownTexts); ok && bytes.Equal(old.setting, setting) {
			return old, nil
		}
		catalogue, err := texts.Replace(setting)
		return ownTexts{setting: setting, catalogue: catalogue, err: err}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the setting %s: %w", selfCheckTexts, err)
	}
	if own.err != nil {
		return nil, fmt.Errorf("the setting %s: %w", selfCheckTexts, own.err)
	}
	return own.catalogue, nil
}
