package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
	"checkoutlock/web"
)

// LockSettingsStore keeps the lock settings entry of the tenant in ctx, and the
// version that every change of it raises.
type LockSettingsStore interface {
	State(ctx context.Context) (schemas.LockSettingsState, error)
	// Change writes the entry's value, which ParseLockSettings accepts, records who did
	// it and why, and returns the new state. Fault: Conflict.
	Change(ctx context.Context, change schemas.LockSettingsChange) (schemas.LockSettingsState, error)
	// Remove deletes the entry, so that the environment's settings count again, and
	// records who did it.
	Remove(ctx context.Context) error
	// Announce records the environment of the named instance, and returns the
	// state that follows. Fault: Conflict.
	Announce(ctx context.Context, e schemas.LockEnvironment, instance string) (schemas.LockSettingsState, error)
}

// announcement is schemas.LockEnvironment with an Enabled that may be absent.
type announcement struct {
	Enabled *bool  `json:"enabled"`
	Version string `json:"version"`
}

var (
	lockSettingsChange = jsonschema.For[schemas.LockSettingsChange]("lock-settings-change")
	lockEnvironment    = jsonschema.For[announcement]("lock-environment")
)

type lockSettingsHandlers struct{ store LockSettingsStore }

// LockSettingsRoutes are /check-out-lock-settings-storage (ours): the entry as
// FOLIO stores it, with the version that a commit without a lock shows. After
// the answer to a change, no check-out commits that acted on older settings.
func LockSettingsRoutes(store LockSettingsStore) []web.Route {
	const path, permission = "/check-out-lock-settings-storage", "circulation-storage.check-out-lock-settings.item"
	h := lockSettingsHandlers{store: store}
	return []web.Route{
		{Method: http.MethodGet, Path: path, Permission: permission + ".get", Query: web.Strict(), Endpoint: web.JSON(http.StatusOK, web.FromContext(store.State))},
		{
			Method: http.MethodPut, Path: path, Permission: permission + ".put", Query: web.Strict(), Refusals: []fault.Code{fault.Conflict},
			Body: web.Schema(lockSettingsChange.Name), Endpoint: web.JSON(http.StatusOK, h.put),
		},
		{
			Method: http.MethodDelete, Path: path, Permission: permission + ".delete", Query: web.Strict(),
			Endpoint: web.Empty(http.StatusNoContent, func(c echo.Context) error { return store.Remove(c.Request().Context()) }),
		},
		{
			Method: http.MethodPost, Path: path + "/environment", Permission: "circulation-storage.check-out-lock-settings.environment.post",
			Query: web.Strict(), Headers: ofHolder, Refusals: []fault.Code{fault.Conflict}, Body: web.Schema(lockEnvironment.Name), Endpoint: web.JSON(http.StatusOK, h.announce),
		},
	}
}

// put handles PUT /check-out-lock-settings-storage: 200 with the new state, 422
// for a value, reason or name that cannot be used, 409 for a version that is no
// longer stored.
func (h lockSettingsHandlers) put(c echo.Context) (schemas.LockSettingsState, error) {
	change, err := web.DecodeStorable(c, lockSettingsChange)
	if err != nil {
		return schemas.LockSettingsState{}, err
	}
	if _, err := schemas.ParseLockSettings(change.Value); err != nil {
		return schemas.LockSettingsState{}, fault.StorageRefusal(err.Error(), fault.Param("value", fmt.Sprintf("%.100s", change.Value)))
	}
	note := lock.NewNote(change.Reason, change.ByName)
	if err := note.Check(); err != nil {
		return schemas.LockSettingsState{}, err
	}
	change.Reason, change.ByName = note.Reason, note.By
	return h.store.Change(c.Request().Context(), change)
}

// announce handles POST /check-out-lock-settings-storage/environment: 200 with the
// state that follows, 409 when the settings have another version than the one read,
// 422 for a body that does not say what it must.
func (h lockSettingsHandlers) announce(c echo.Context) (schemas.LockSettingsState, error) {
	body, err := web.DecodeStorable(c, lockEnvironment)
	if err != nil {
		return schemas.LockSettingsState{}, err
	}
	if *body.Enabled && body.Version == "" {
		var wrong fault.List
		wrong.Add("version", "must be the version that was read, a string", "")
		return schemas.LockSettingsState{}, wrong.Err()
	}
	return h.store.Announce(c.Request().Context(), schemas.LockEnvironment{Enabled: *body.Enabled, Version: body.Version}, readHolder(c))
}
