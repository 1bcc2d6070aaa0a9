package storageclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const (
	lockSettingsPath = "/check-out-lock-settings-storage"
	aboutLock        = "lock settings"
	rulesPath        = "/circulation-rules-storage"
	// titleLevelSetting is the setting that switches requests for titles on (FOLIO). Without it, the one
	// that FOLIO had before counts.
	titleLevelSetting, olderTitleSetting = "generalTlr", "TLR"
)

var circulationSettings = collection{path: "/circulation-settings-storage/circulation-settings", key: "circulationSettings"}

// titleLevelPath is where the cache keeps the setting.
var titleLevelPath = circulationSettings.path + "?" + titleLevelSetting

// State implements settings.Storage.
func (c *Client) State(ctx context.Context) (schemas.LockSettingsState, error) {
	return c.callSettings(ctx, get(aboutLock, lockSettingsPath, nil))
}

// Put implements settings.Storage.
func (c *Client) Put(ctx context.Context, change schemas.LockSettingsChange) (schemas.LockSettingsState, error) {
	return c.callSettings(ctx, send(aboutLock, http.MethodPut, lockSettingsPath, change, http.StatusOK))
}

// Announce implements settings.Storage.
func (c *Client) Announce(ctx context.Context, e schemas.LockEnvironment) (schemas.LockSettingsState, error) {
	return c.callSettings(ctx, send(aboutLock, http.MethodPost, lockSettingsPath+"/environment", e, http.StatusOK))
}

// callSettings makes a call that is answered with the state of the lock settings.
func (c *Client) callSettings(ctx context.Context, r request) (schemas.LockSettingsState, error) {
	return call(ctx, c, r, "version", func(state schemas.LockSettingsState) bool { return state.Version != "" })
}

// compiledRules is a rules text with the result of compiling it.
type compiledRules struct {
	text  string
	rules *policy.Rules
	err   error
}

// Rules implements library.Records. A text is compiled once, however often it
// is fetched.
func (c *Client) Rules(ctx context.Context) (*policy.Rules, error) {
	compiled, err := getCached(ctx, c, rulesPath, func(ctx context.Context, old any) (compiledRules, error) {
		stored, err := c.StoredRules(ctx)
		if err != nil {
			return compiledRules{}, err
		}
		if old, ok := old.(compiledRules); ok && old.text == stored.RulesAsText {
			return old, nil
		}
		rules, err := policy.Compile(stored.RulesAsText)
		return compiledRules{text: stored.RulesAsText, rules: rules, err: err}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the circulation rules: %w", err)
	}
	return compiled.rules, compiled.err
}

// StoredRules returns the tenant's rules as they are stored now.
func (c *Client) StoredRules(ctx context.Context) (schemas.CirculationRules, error) {
	return call[schemas.CirculationRules](ctx, c, get("", rulesPath, nil), "", nil)
}

// PutRules replaces the tenant's rules. They are in force at once in this instance, and within
// two seconds in the others.
func (c *Client) PutRules(ctx context.Context, text string) error {
	_, err := c.writeCached(ctx, rulesPath, send("writing the circulation rules", http.MethodPut, rulesPath,
		schemas.CirculationRules{RulesAsText: text, PoliciesExist: true}, http.StatusNoContent))
	return err
}

// TitleLevelRequests implements library.Records. A tenant without the setting,
// or with a setting without a value, has them switched off. A value other than true
// and false is a fault of stored configuration.
func (c *Client) TitleLevelRequests(ctx context.Context) (bool, error) {
	s, err := c.titleSettings(ctx)
	return s.On, err
}

// TitleHoldsObeyRules implements requests.Library.
func (c *Client) TitleHoldsObeyRules(ctx context.Context) (bool, error) {
	s, err := c.titleSettings(ctx)
	return s.HoldsObeyRules == true, err
}

// titleSettings is the value of the setting for requests of titles.
type titleSettings struct {
	On             bool `json:"titleLevelRequestsFeatureEnabled"`
	HoldsObeyRules any  `json:"tlrHoldShouldFollowCirculationRules"` // of any type, so that a bad value fails no check-out
}

func (c *Client) titleSettings(ctx context.Context) (titleSettings, error) {
	s, err := getCached(ctx, c, titleLevelPath, func(ctx context.Context, _ any) (s titleSettings, err error) {
		value, exists, err := fault.Found(c.findSetting(ctx, anyOf("name", []string{titleLevelSetting, olderTitleSetting})+" sortBy name"))
		if err != nil || !exists {
			return s, err
		}
		if err := json.Unmarshal(value, &s); err != nil {
			return s, fault.Wrap(err, fault.Internal,
				"The circulation setting %s cannot be read: titleLevelRequestsFeatureEnabled in its value must be true or false", titleLevelSetting)
		}
		return s, nil
	})
	if err != nil {
		return titleSettings{}, fmt.Errorf("reading whether titles are requested: %w", err)
	}
	return s, nil
}

const writingSetting = "writing a circulation setting"

// Settings implements httpapi.Storage.
func (c *Client) Settings(ctx context.Context, query string, offset, limit int) ([]json.RawMessage, int, error) {
	return listPage[json.RawMessage](ctx, c, circulationSettings, query, offset, limit)
}

// Setting implements httpapi.Storage.
func (c *Client) Setting(ctx context.Context, id string) (json.RawMessage, error) {
	return readRecord[json.RawMessage](ctx, c, circulationSettings, id)
}

// CreateSetting implements httpapi.Storage.
func (c *Client) CreateSetting(ctx context.Context, setting json.RawMessage) (json.RawMessage, error) {
	return c.writeCached(ctx, titleLevelPath, send(writingSetting, http.MethodPost, circulationSettings.path, setting, http.StatusCreated))
}

// ReplaceSetting implements httpapi.Storage.
func (c *Client) ReplaceSetting(ctx context.Context, id string, setting json.RawMessage) error {
	_, err := c.writeCached(ctx, titleLevelPath, changeRecord(writingSetting, http.MethodPut, circulationSettings.path, id, setting))
	return err
}

// DeleteSetting implements httpapi.Storage.
func (c *Client) DeleteSetting(ctx context.Context, id string) error {
	_, err := c.writeCached(ctx, titleLevelPath, changeRecord(writingSetting, http.MethodDelete, circulationSettings.path, id, nil))
	return err
}
