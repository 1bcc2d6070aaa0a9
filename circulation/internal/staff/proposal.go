package staff

import (
	"encoding/json"
	"fmt"
	"reflect"

	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas/fault"
)

// proposal is a change of the settings as ChangeSettings reads it. What people type
// may be of any type.
type proposal struct {
	Enabled          settings.Field[bool] `json:"enabled"`
	LockTTLMs        any                  `json:"lockTtlMs"` // nil for the service's own
	RetryIntervalsMs any                  `json:"retryIntervalsMs"`
	Version          string               `json:"version,omitempty"`
	Reason           string               `json:"reason"`
}

// proposalOf changes nothing: a view can be sent back.
func proposalOf(view settings.View) proposal {
	return proposal{Enabled: view.Enabled, LockTTLMs: view.LockTTLMs, RetryIntervalsMs: view.RetryIntervalsMs, Version: view.Version}
}

// body is a proposal as it is sent.
func (w proposal) body() (json.RawMessage, error) {
	body, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("writing the settings: %w", err)
	}
	return body, nil
}

// parse checks a change as ChangeSettings does. Fault: Invalid.
func (p *Pages) parse(wanted proposal) (settings.Change, error) {
	body, err := wanted.body()
	if err != nil {
		return settings.Change{}, err
	}
	change, err := p.Admin.Environment().ParseChange(body)
	if err != nil {
		return change, fmt.Errorf("reading the settings: %w", err)
	}
	return change, nil
}

// change writes the settings as wanted, with a reason. What is in force already
// counts as written: whoever sends a form twice, or lost the first answer, has what
// they wanted. Fault: Conflict when others were changed since wanted's version.
func (p *Pages) change(v *visit, wanted proposal, reason string) error {
	wanted.Reason = reason
	body, err := wanted.body()
	if err != nil {
		return err
	}
	_, err = p.Admin.ChangeSettings(v.ctx(), body)
	if fault.Is(err, fault.Conflict) {
		if p.inForce(v, wanted) {
			return nil
		}
		return fault.Wrap(err, fault.Conflict, "The settings were changed since you opened the page. Nothing of yours was saved: look at them again and repeat your change.")
	}
	return err
}

// inForce tells whether the library's own settings are the wanted ones by now.
func (p *Pages) inForce(v *visit, wanted proposal) bool {
	view, err := p.Admin.Settings(v.ctx())
	if err != nil || view.Problem != "" {
		return false
	}
	now, errNow := p.parse(proposalOf(view))
	then, errThen := p.parse(wanted)
	return errNow == nil && errThen == nil && reflect.DeepEqual(now.LockSettings, then.LockSettings)
}
