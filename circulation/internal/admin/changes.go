package admin

import (
	"context"
	"encoding/json"

	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

// Settings returns the settings in force, each with its source.
func (s *Service) Settings(ctx context.Context) (settings.View, error) {
	current, problem, err := s.settings.Read(ctx)
	if err != nil {
		return settings.View{}, err
	}
	return current.View(problem), nil
}

// ChangeSettings changes the tenant's settings by a body as
// settings.Environment.ParseChange reads it. The history of changes keeps its property
// reason and the user who acts. Faults: Invalid, with a detail for each
// invalid property, whose first parameter names it; Conflict if the body's
// version is no longer the stored one.
func (s *Service) ChangeSettings(ctx context.Context, body json.RawMessage) (settings.View, error) {
	change, err := s.environment.ParseChange(body)
	if err != nil {
		return settings.View{}, err
	}
	change.ByName = s.actorName(ctx)
	current, err := s.settings.Update(ctx, change)
	if err != nil {
		return settings.View{}, err
	}
	s.log.InfoContext(ctx, "check-out lock settings changed", "enabled", current.Enabled, "ttl", current.TTL,
		"waits", current.Waits, "version", current.Version, "by", change.ByName, "by_id", okapi.FromContext(ctx).UserID)
	return current.View(nil), nil
}

// Changes returns the changes that staff made, newest first. kind is one of
// schemas.ChangeSettings and schemas.ChangeRelease, or empty for both; limit is 1
// to schemas.MaxChangePage. Fault: Invalid for anything else.
func (s *Service) Changes(ctx context.Context, kind string, offset, limit int) (schemas.LockChanges, error) {
	return s.storage.LockChanges(ctx, kind, offset, limit)
}
