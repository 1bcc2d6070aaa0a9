// Package tenant names the library whose records a request is about.
package tenant

import (
	"checkoutlock/schemas/tenant"
)

// ID is a checked tenant id.
type ID = tenant.ID

// The functions of schemas/tenant.
var (
	ErrMissing  = tenant.ErrMissing
	Parse       = tenant.Parse
	FromSchema  = tenant.FromSchema
	NewContext  = tenant.NewContext
	FromContext = tenant.FromContext
)
