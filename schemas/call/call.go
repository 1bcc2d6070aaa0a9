// Package call carries what one call says about itself in FOLIO's headers, from
// the edge to the log and to outgoing calls.
package call

import "context"

// Info is the call's own data. Empty fields were not sent.
type Info struct {
	RequestID   string   // correlation id; the edge makes one when none came
	UserID      string   // the acting user, a UUID
	UserName    string   // the acting user's name, as who signed in gave it; no header's
	Token       string   // passed on unchanged, never logged
	Permissions []string // granted to the acting user, as the gateway says
}

// Has reports whether the acting user was granted permission.
func (i Info) Has(permission string) bool {
	for _, p := range i.Permissions {
		if p == permission {
			return true
		}
	}
	return false
}

type key struct{}

// NewContext returns a context that carries i.
func NewContext(ctx context.Context, i Info) context.Context {
	return context.WithValue(ctx, key{}, i)
}

// FromContext returns what NewContext put there, or the zero Info.
func FromContext(ctx context.Context) Info {
	i, _ := ctx.Value(key{}).(Info)
	return i
}
