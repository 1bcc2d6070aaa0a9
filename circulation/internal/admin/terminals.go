package admin

import (
	"context"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

// TerminalStore keeps the self-check machines of the tenant in ctx.
type TerminalStore interface {
	// Terminals returns them by name.
	Terminals(ctx context.Context) ([]library.Terminal, error)
	// AddTerminal adds one. Fault: Invalid for a login that exists or a value that breaks a rule.
	AddTerminal(ctx context.Context, t NewTerminal) error
	// SetTerminalPassword replaces a password. Faults: NotFound, Invalid, Conflict.
	SetTerminalPassword(ctx context.Context, id, password string) error
	// ChangeTerminal changes a machine. Faults: NotFound, Invalid, and Conflict for a machine that was
	// changed since it was read.
	ChangeTerminal(ctx context.Context, id string, change TerminalChange) error
	// TerminalActivity returns what the machines do at all instances, and the notes for staff.
	TerminalActivity(ctx context.Context) (schemas.TerminalActivity, error)
}

// TerminalChange is what staff change of a machine. An empty text leaves the choice to the service; an
// empty service point needs one from the login.
type TerminalChange struct {
	Version        int // of the machine as it was read
	Name           string
	ServicePointID string
	Institution    string
	Language       string // en, de, es
	CharacterSet   string
	LineEnd        string // cr, crlf, lf
	Enabled        bool
}

// NewTerminal is a machine that staff add, as it is stored. What it leaves out is the service's choice.
type NewTerminal struct {
	ID             string `json:"id,omitempty"` // of the form, so that one that was sent twice is known
	Login          string `json:"login"`
	Name           string `json:"name"`
	ServicePointID string `json:"servicePointId"`
	Password       string `json:"password"`
}

// AllServicePoints implements staff.Admin: the places where terminals may stand, by name.
func (s *Service) AllServicePoints(ctx context.Context) ([]library.ServicePoint, error) {
	return s.storage.ListServicePoints(ctx, schemas.MaxListedTerminals)
}

// AddTerminal adds a machine and logs who did it.
func (s *Service) AddTerminal(ctx context.Context, t NewTerminal) error {
	if err := s.TerminalStore.AddTerminal(ctx, t); err != nil {
		return err
	}
	s.log.InfoContext(ctx, "self-check machine added", "login", t.Login, "by", s.actorName(ctx), "by_id", okapi.FromContext(ctx).UserID)
	return nil
}

// ChangeTerminal changes a machine and logs who did it.
func (s *Service) ChangeTerminal(ctx context.Context, id string, change TerminalChange) error {
	if err := s.TerminalStore.ChangeTerminal(ctx, id, change); err != nil {
		return err
	}
	s.log.InfoContext(ctx, "self-check machine changed", "terminal", id, "enabled", change.Enabled, "by", s.actorName(ctx),
		"by_id", okapi.FromContext(ctx).UserID)
	return nil
}

// SetTerminalPassword sets a machine's password and logs who did it.
func (s *Service) SetTerminalPassword(ctx context.Context, id, password string) error {
	if err := s.TerminalStore.SetTerminalPassword(ctx, id, password); err != nil {
		return err
	}
	s.log.InfoContext(ctx, "password of a self-check machine set", "terminal", id, "by", s.actorName(ctx), "by_id", okapi.FromContext(ctx).UserID)
	return nil
}
