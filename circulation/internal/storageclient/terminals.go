package storageclient

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
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

// activityPath is what terminals do (ours).
const activityPath = "/self-check-activity"

// ReportTerminals implements sip2.ActivityStore.
func (c *Client) ReportTerminals(ctx context.Context, report schemas.TerminalReport) error {
	return c.run(ctx, send("reporting what terminals do", http.MethodPost, activityPath, report, http.StatusNoContent))
}

// TerminalActivity implements admin.TerminalStore.
func (c *Client) TerminalActivity(ctx context.Context) (schemas.TerminalActivity, error) {
	r := get("listing what terminals do", activityPath, nil)
	return call(ctx, c, r, "terminals", func(a schemas.TerminalActivity) bool { return a.Terminals != nil })
}

// VerifyPIN compares a patron's PIN with the stored one. Its error means that this was not possible.
func (c *Client) VerifyPIN(ctx context.Context, userID, pin string) (library.PINCheck, error) {
	_, err := c.do(ctx, send("verifying a PIN", http.MethodPost, "/patron-pin/verify", schemas.PatronPIN{ID: userID, PIN: pin}, http.StatusOK))
	f, refused := errors.AsType[*fault.Error](err)
	switch {
	case err == nil:
		return library.PINRight, nil
	case fault.Is(err, fault.LoginRefused):
		return library.PINWrong, nil
	case refused && len(f.Details) > 0 && f.Details[0].Code == schemas.PINNotSet:
		return library.PINNotSet, nil
	}
	return 0, err
}
