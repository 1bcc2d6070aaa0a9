package storageclient

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
)

// signOuts is where the sign-outs of staff are: each is a settings entry of the tenant, whose id is
// the session's. No other program reads them.
var signOuts = collection{path: "/settings/entries", key: "items"}

const signOutScope = "circulation.staff-sign-outs"

// signOut is the settings entry of a session that ended by a sign-out.
type signOut struct {
	ID    string    `json:"id"`
	Scope string    `json:"scope"`
	Key   string    `json:"key"`
	Value time.Time `json:"value"` // nothing needs the entry after it
}

// SignOut implements auth.SignOuts. It deletes some of the entries that nothing needs any more.
func (c *Client) SignOut(ctx context.Context, session uuid.UUID, until time.Time) error {
	const about = "signing out"
	id := session.String()
	err := c.run(ctx, send(about, http.MethodPost, signOuts.path, signOut{id, signOutScope, id, until.UTC()}, http.StatusNoContent))
	if err != nil && !fault.Is(err, fault.Forbidden) { // the session's entry exists
		return err
	}
	old, err := listRecords[signOut](ctx, c, signOuts, equals("scope", signOutScope), 1000)
	for _, entry := range old {
		if err == nil && entry.Value.Before(time.Now()) { // another sign-out may delete it
			_, _, err = fault.Found(c.do(ctx, changeRecord(about, http.MethodDelete, signOuts.path, entry.ID, nil)))
		}
	}
	return err
}

// IsSignedOut implements auth.SignOuts.
func (c *Client) IsSignedOut(ctx context.Context, session uuid.UUID) (bool, error) {
	_, found, err := fault.Found(readRecord[signOut](ctx, c, signOuts, session.String()))
	return found, err
}
