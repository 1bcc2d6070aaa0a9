package library

import (
	"context"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// Block is a check that staff may lift: its name in FOLIO's errors and requests, and the permission
// that it takes.
type Block struct{ Name, Permission string }

// PatronBlock is that of patrons who are blocked by hand or by the library's conditions.
var PatronBlock = Block{Name: "patronBlock", Permission: "circulation.override-patron-block.post"}

// Describe returns the block as an error names it, with the permission that the caller lacks for it.
func (b Block) Describe(ctx context.Context) *fault.OverridableBlock {
	named := &fault.OverridableBlock{Name: b.Name, MissingPermissions: []string{}}
	if !okapi.FromContext(ctx).HasPermission(b.Permission) {
		named.MissingPermissions = append(named.MissingPermissions, b.Permission)
	}
	return named
}

// CheckPermission refuses a caller without the permission for the block. The parameters name what
// asks for the permission.
func (b Block) CheckPermission(ctx context.Context, parameters ...fault.Parameter) fault.List {
	named := b.Describe(ctx)
	if len(named.MissingPermissions) == 0 {
		return nil
	}
	d := fault.Refusal("INSUFFICIENT_OVERRIDE_PERMISSIONS", "Insufficient override permissions", parameters...)
	d.OverridableBlock = named
	return fault.List{d}
}
