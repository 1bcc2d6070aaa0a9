package schemas

import "github.com/google/uuid"

// IsUUID tells whether id is a UUID in its usual form, 36 characters with hyphens,
// in either case. It is what every id on the wire must be: uuid.Parse alone takes
// braces, a prefix and a form without hyphens, too, and none of them fits into a
// path or a query.
func IsUUID(id string) bool {
	return len(id) == len(uuid.UUID{}.String()) && uuid.Validate(id) == nil
}
