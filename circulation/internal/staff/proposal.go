package staff

import (
	"encoding/json"
	"fmt"
	"reflect"

	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas/fault"
)

// proposal is a change of the settings as ChangeSettings parses it. Typed values may be
// of any type.
type proposal struct {
	Enabled          settings.Field[bool] `json:"enabled"`
	LockTTLMs        any                  `json:"lockTtlMs"` // nil for the service's own
	RetryIntervalsMs any                  `json:"retryIntervalsMs"`
	Version          string               `json:"version,omitempty"`
	Reason           string               `json:"reason"`
}

// newProposal proposes what is in force, so it changes nothing.
func newProposal(view settings.View) proposal {
	return proposal{Enabled: view.Enabled, LockTTLMs: view.LockTTLMs, RetryIntervalsMs: view.RetryIntervalsMs, Version: view.Version}
}

// parseProposal returns a change as ChangeSettings takes it and as it parses it.
// Fault: Invalid.
func (p *pages) parseProposal(wanted proposal) (body json.RawMessage, change settings.Change, err error) {
	if body, err = json.Marshal(wanted); err != nil {
		return nil, change, fmt.Errorf("writing the settings: %w", err)
	}
	if change, err = p.admin.Environment().ParseChange(body); err != nil {
		return nil, change, fmt.Errorf("reading the settings: %w", err)
	}
	return body, change, nil
}

// saveProposal writes the settings. It succeeds if the wanted settings are in force
// already, because a visitor may send a form twice. Fault: Conflict if other settings
// were saved since wanted's version.
func (p *pages) saveProposal(v *visit, wanted proposal) error {
	body, change, err := p.parseProposal(wanted)
	if err != nil {
		return err
	}
	_, err = p.admin.ChangeSettings(v.ctx(), body)
	switch {
	case !fault.Is(err, fault.Conflict):
		return err
	case p.isInForce(v, change):
		return nil
	}
	return fault.Wrap(err, fault.Conflict, "The settings were changed since you opened the page. Nothing of yours was saved: look at them again and repeat your change.")
}

// isInForce reports whether the library's own settings are the wanted ones.
func (p *pages) isInForce(v *visit, wanted settings.Change) bool {
	view, err := p.admin.Settings(v.ctx())
	if err != nil || view.Problem != "" {
		return false
	}
	_, now, err := p.parseProposal(newProposal(view))
	return err == nil && reflect.DeepEqual(now.Own, wanted.Own)
}
