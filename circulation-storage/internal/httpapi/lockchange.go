package httpapi

import (
	"context"
	"math"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
	"checkoutlock/web"
)

const defaultChangesPage = 20

// LockChanges keeps the changes of the check-out lock of the tenant in ctx.
type LockChanges interface {
	// List returns a page of the changes of a kind, newest first, and how many there
	// are in all; kind "" is every kind.
	List(ctx context.Context, kind string, offset, limit int) ([]lock.Change, int, error)
}

// LockChangeRoutes are /check-out-lock-changes-storage (ours): who changed the lock
// settings and released locks by force, when and why.
func LockChangeRoutes(changes LockChanges) []web.Route {
	return []web.Route{{
		Method: http.MethodGet, Path: "/check-out-lock-changes-storage", Permission: "circulation-storage.check-out-lock-changes.collection.get",
		Query: web.Strict(
			web.Parameter{
				Name: "kind", Meaning: "what was changed", Most: schemas.MaxHistoryText,
				Allowed: []string{schemas.ChangeSettings, schemas.ChangeRelease},
			},
			web.Offset(math.MaxInt32), web.Limit(defaultChangesPage, 1, schemas.MaxChangePage),
		),
		Endpoint: web.JSON(http.StatusOK, func(c echo.Context) (schemas.LockChanges, error) {
			q := web.QueryOf(c)
			found, total, err := changes.List(c.Request().Context(), q.Text("kind"), q.Integer("offset"), q.Integer("limit"))
			return schemas.LockChanges{Changes: convert.All(found, renderChange), TotalRecords: total}, err
		}),
	}}
}

func renderChange(c lock.Change) schemas.LockChange {
	wire := schemas.LockChange{
		ID: c.ID.String(), Date: c.Date.UTC().Format(schemas.FolioTime), Kind: c.Kind,
		By:     schemas.ChangedBy{UserID: renderID(c.UserID), Name: c.Note.By},
		Reason: c.Note.Reason, RequestID: c.RequestID, Before: c.Before, After: c.After,
	}
	if c.Lock != nil {
		wire.Lock = new(renderLock(*c.Lock))
	}
	return wire
}

// renderID returns "" for no id.
func renderID(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}
