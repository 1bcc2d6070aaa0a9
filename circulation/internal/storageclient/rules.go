package storageclient

import (
	"context"
	"fmt"
	"net/http"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
)

// rulesPath is where the tenant's circulation rules are.
const rulesPath = "/circulation-rules-storage"

// compiledRules is a rules text with what came of compiling it.
type compiledRules struct {
	text  string
	rules *policy.Rules
	err   error
}

// Rules implements checkout.Library. A text is compiled once, however often it
// is fetched.
func (c *Client) Rules(ctx context.Context) (*policy.Rules, error) {
	key, err := keyFor(ctx, rulesPath)
	if err != nil {
		return nil, err
	}
	value, err := c.cache.get(ctx, key, func(ctx context.Context, old any) (any, error) {
		stored, err := c.StoredRules(ctx)
		if err != nil {
			return nil, err
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
	compiled := value.(compiledRules)
	return compiled.rules, compiled.err
}

// StoredRules returns the tenant's rules as they are stored now.
func (c *Client) StoredRules(ctx context.Context) (schemas.CirculationRules, error) {
	r := get(rulesPath, nil)
	body, err := c.do(ctx, r)
	if err != nil {
		return schemas.CirculationRules{}, err
	}
	var stored schemas.CirculationRules
	err = decode(r, body, &stored)
	return stored, err
}

// PutRules replaces the tenant's rules. This instance judges by the new ones at
// once, the others within two seconds.
func (c *Client) PutRules(ctx context.Context, text string) error {
	key, err := keyFor(ctx, rulesPath)
	if err != nil {
		return err
	}
	defer c.cache.drop(key)
	_, err = c.do(ctx, request{
		method: http.MethodPut, route: rulesPath, path: rulesPath, want: http.StatusNoContent,
		body: schemas.CirculationRules{RulesAsText: text},
	})
	if err != nil {
		return fmt.Errorf("writing the circulation rules: %w", err)
	}
	return nil
}
