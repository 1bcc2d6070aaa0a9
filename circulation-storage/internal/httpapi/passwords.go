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

var terminalLogin = jsonschema.For[schemas.TerminalLogin]("terminal-login")

// PasswordStore keeps the hashes of passwords of the tenant in ctx.
type PasswordStore interface {
	// TerminalByLogin returns a self-check terminal and the hash of its password, "" for none. Fault:
	// NotFound.
	TerminalByLogin(ctx context.Context, login string) (doc json.RawMessage, hash string, err error)
}

// passwordHandlers compares passwords. A comparison takes a processor for about 50 ms, so half of the
// processors at most compare at once, and commits keep the others.
type passwordHandlers struct {
	store  PasswordStore
	places chan struct{}
}

// PasswordRoutes compare passwords with what is stored, because no answer shows a hash.
func PasswordRoutes(store PasswordStore) []web.Route {
	h := passwordHandlers{store: store, places: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
	terminal := records.SelfCheckTerminal
	return []web.Route{{
		Method: http.MethodPost, Path: terminal.Path + "/verify", Permission: terminal.Permission + ".verify.post",
		Body: web.Schema(terminalLogin.Name), Refusals: []fault.Code{fault.LoginRefused},
		Endpoint: web.JSON(http.StatusOK, h.verifyTerminal).Of(web.Schema(terminal.Schema)),
	}}
}

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
	matches, err := h.matches(ctx, hash, body.Password)
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

// matches is records.MatchesHash once a place is free.
func (h passwordHandlers) matches(ctx context.Context, hash, password string) (bool, error) {
	select {
	case h.places <- struct{}{}:
	case <-ctx.Done():
		return false, fmt.Errorf("waiting to compare a password: %w", ctx.Err())
	}
	defer func() { <-h.places }()
	return records.MatchesHash(hash, password), nil
}
