package storageclient

import (
	"context"
	"net/http"
	"strings"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
)

// terminals are the machines that speak SIP2 (ours).
var terminals = collection{path: "/self-check-terminals", key: "selfCheckTerminals"}

// Terminal returns the tenant's terminal with a login, in any case. The client keeps it for a second,
// so that a change is in force soon without a call for each message. Fault: NotFound.
func (c *Client) Terminal(ctx context.Context, login string) (library.Terminal, error) {
	login = strings.ToLower(login)
	return getCached(ctx, c, terminals.path+"/"+login, func(ctx context.Context, _ any) (library.Terminal, error) {
		return findRecord[library.Terminal](ctx, c, terminals, equals("login", login))
	})
}

// VerifyTerminal returns the terminal with a login and a password, without the cache. Fault:
// LoginRefused if they are not those of an enabled terminal.
func (c *Client) VerifyTerminal(ctx context.Context, login, password string) (library.Terminal, error) {
	return call[library.Terminal](ctx, c, send("verifying a login", http.MethodPost, terminals.path+"/verify",
		schemas.TerminalLogin{Login: login, Password: password}, http.StatusOK), "", nil)
}
