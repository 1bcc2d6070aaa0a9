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

func (w proposal) marshal() (json.RawMessage, error) {
	body, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("writing the settings: %w", err)
	}
	return body, nil
}

// parseProposal checks a change as ChangeSettings does. Fault: Invalid.
func (p *Pages) parseProposal(wanted proposal) (settings.Change, error) {
	body, err := wanted.marshal()
	if err != nil {
		return settings.Change{}, err
	}
	change, err := p.admin.Environment().ParseChange(body)
	if err != nil {
		return change, fmt.Errorf("reading the settings: %w", err)
	}
	return change, nil
}

// saveProposal writes the settings. It succeeds if the wanted settings are in force
// already, because a visitor may send a form twice. Fault: Conflict if other settings
// were saved since wanted's version.
func (p *Pages) saveProposal(v *visit, wanted proposal, reason string) error {
	wanted.Reason = reason
	body, err := wanted.marshal()
	if err != nil {
		return err
	}
	_, err = p.admin.ChangeSettings(v.ctx(), body)
	switch {
	case !fault.Is(err, fault.Conflict):
		return err
	case p.isInForce(v, wanted):
		return nil
	}
	return fault.Wrap(err, fault.Conflict, "The settings were changed since you opened the page. Nothing of yours was saved: look at them again and repeat your change.")
}

// isInForce reports whether the library's own settings are the wanted ones.
func (p *Pages) isInForce(v *visit, wanted proposal) bool {
	view, err := p.admin.Settings(v.ctx())
	if err != nil || view.Problem != "" {
		return false
	}
	now, errNow := p.parseProposal(newProposal(view))
	then, errThen := p.parseProposal(wanted)
	return errNow == nil && errThen == nil && reflect.DeepEqual(now.LockSettings, then.LockSettings)
}
