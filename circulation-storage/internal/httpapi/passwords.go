package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
	"checkoutlock/web"
)

var (
	terminalLogin = jsonschema.For[schemas.TerminalLogin]("terminal-login")
	patronPIN     = jsonschema.For[schemas.PatronPIN]("patron-pin")
)

// PasswordStore keeps the hashes of passwords of the tenant in ctx.
type PasswordStore interface {
	// TerminalByLogin returns a self-check terminal and the hash of its password, "" for none. Fault:
	// NotFound.
	TerminalByLogin(ctx context.Context, login string) (doc json.RawMessage, hash string, err error)
	// PIN returns the hash of a patron's PIN, "" for none.
	PIN(ctx context.Context, userID string) (string, error)
	// SetPIN stores the hash of a patron's PIN. Fault: Invalid for a missing patron.
	SetPIN(ctx context.Context, userID, hash string) error
	DeletePIN(ctx context.Context, userID string) error
}

// passwordHandlers makes and compares hashes. Each takes a processor for about 16 ms, so half of the
// processors at most do it at once, and commits keep the others.
type passwordHandlers struct {
	store    PasswordStore
	places   chan struct{}
	verified *records.Verified // logins of terminals
}

// PasswordRoutes are FOLIO's /patron-pin, and the comparison of terminals' passwords (ours). No answer
// shows a hash.
func PasswordRoutes(store PasswordStore) []web.Route {
	h := passwordHandlers{
		store: store, places: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), verified: records.NewVerified(),
	}
	terminal := records.SelfCheckTerminal
	pin := web.Schema(patronPIN.Name)
	refused := []fault.Code{fault.LoginRefused}
	return []web.Route{
		{
			Method: http.MethodPost, Path: terminal.Path + "/verify", Permission: terminal.Permission + ".verify.post",
			Body: web.Schema(terminalLogin.Name), Refusals: refused,
			Endpoint: web.JSON(http.StatusOK, h.verifyTerminal).Of(web.Schema(terminal.Schema)),
		},
		{
			Method: http.MethodPost, Path: pinPath, Permission: "patron-pin.post", Interface: pinInterface, Body: pin,
			Endpoint: web.Empty(http.StatusCreated, h.setPIN),
		},
		{
			Method: http.MethodDelete, Path: pinPath, Permission: "patron-pin.delete", Interface: pinInterface, Body: pin,
			Endpoint: web.Empty(http.StatusOK, h.deletePIN),
		},
		{
			Method: http.MethodPost, Path: pinPath + "/verify", Permission: "patron-pin.validate", Interface: pinInterface, Body: pin,
			Refusals: refused, Endpoint: web.Empty(http.StatusOK, h.verifyPIN),
		},
	}
}

const pinPath, pinInterface = "/patron-pin", "patron-pin 1.0"

// verifyTerminal handles POST /self-check-terminals/verify: 200 with the terminal, or 422 with the
// code LOGIN_REFUSED, which does not say what was wrong.
func (h passwordHandlers) verifyTerminal(c echo.Context) (json.RawMessage, error) {
	body, err := web.DecodeStorable(c, terminalLogin)
	if err != nil {
		return nil, err
	}
	ctx := c.Request().Context()
	doc, hash, err := h.store.TerminalByLogin(ctx, body.Login)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	matches, err := h.matchesPassword(ctx, hash, body.Password)
	if err != nil {
		return nil, err
	}
	var terminal struct {
		Enabled bool `json:"enabled"`
	}
	if matches {
		if err := json.Unmarshal(doc, &terminal); err != nil {
			return nil, fmt.Errorf("reading a stored terminal: %w", err)
		}
	}
	if !terminal.Enabled {
		return nil, fault.New(fault.LoginRefused, "Login and password are not those of an enabled terminal")
	}
	return doc, nil
}

// matchesPassword compares a password that has not matched the same hash before: after a restart of
// circulation, all its machines sign in again at once.
func (h passwordHandlers) matchesPassword(ctx context.Context, hash, password string) (matches bool, err error) {
	if h.verified.Has(hash, password) {
		return true, nil
	}
	err = h.inPlace(ctx, func() { matches = records.MatchesHash(hash, password) })
	if matches {
		h.verified.Add(hash, password)
	}
	return matches, err
}

// setPIN handles POST /patron-pin: 201. It replaces the PIN that the patron has.
func (h passwordHandlers) setPIN(c echo.Context) error {
	body, err := web.DecodeStorable(c, patronPIN)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	var hash string
	var refused error
	if err := h.inPlace(ctx, func() { hash, refused = records.HashPIN(body.PIN) }); err != nil {
		return err
	}
	if refused != nil {
		return refused
	}
	return h.store.SetPIN(ctx, body.ID, hash)
}

// deletePIN handles DELETE /patron-pin: 200, also for a patron without a PIN, as in FOLIO.
func (h passwordHandlers) deletePIN(c echo.Context) error {
	body, err := web.DecodeStorable(c, patronPIN)
	if err != nil {
		return err
	}
	return h.store.DeletePIN(c.Request().Context(), body.ID)
}

// verifyPIN handles POST /patron-pin/verify: 200, or 422 with the code LOGIN_REFUSED for a wrong PIN,
// and PIN_NOT_SET in the body for a patron without one.
func (h passwordHandlers) verifyPIN(c echo.Context) error {
	body, err := web.DecodeStorable(c, patronPIN)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	hash, err := h.store.PIN(ctx, body.ID)
	if err != nil {
		return err
	}
	var matches bool
	if err := h.inPlace(ctx, func() { matches = records.MatchesHash(hash, body.PIN) }); err != nil {
		return err
	}
	switch {
	case hash == "":
		return fault.Validation(fault.Refusal(schemas.PINNotSet, "No PIN is set for this patron", fault.Param("id", body.ID)))
	case !matches:
		return fault.New(fault.LoginRefused, "The PIN is wrong")
	}
	return nil
}

// inPlace runs f once a place is free.
func (h passwordHandlers) inPlace(ctx context.Context, f func()) error {
	select {
	case h.places <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("waiting for a place to work on a password: %w", ctx.Err())
	}
	defer func() { <-h.places }()
	f()
	return nil
}
