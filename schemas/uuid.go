package schemas

import (
	"regexp"

	"github.com/google/uuid"
)

// FolioUUID is what FOLIO takes as an id where it looks closer (raml-util,
// uuid.schema): versions 1 to 5.
const FolioUUID = `^[a-fA-F0-9]{8}-[a-fA-F0-9]{4}-[1-5][a-fA-F0-9]{3}-[89abAB][a-fA-F0-9]{3}-[a-fA-F0-9]{12}$`

const uuidLength = 36

var folioUUID = regexp.MustCompile(FolioUUID)

// IsFolioUUID tells whether id matches FolioUUID, as a patron's and a lock's must.
func IsFolioUUID(id string) bool { return folioUUID.MatchString(id) }

// IsUUID tells whether id is a UUID in its usual form, 36 characters with hyphens,
// in either case. It is what every id on the wire must be: uuid.Parse alone takes
// braces, a prefix and a form without hyphens, too, and none of them fits into a
// path or a query.
func IsUUID(id string) bool {
	return len(id) == uuidLength && uuid.Validate(id) == nil
}
