package sunbird

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/fault"
)

// Namespaces begin with this; the configured resource type in lower case follows.
const Namespaces = "sunbird/"

// notLocked refuses what needs a lock.
const notLocked = "Resource is not locked"

// lockValue is what a lock keeps of its creation. The infos are JSON as text.
type lockValue struct {
	Device       string `json:"deviceId"`
	ResourceType string `json:"resourceType"`
	ResourceInfo string `json:"resourceInfo"`
	CreatorInfo  string `json:"creatorInfo"`
}

func readValue(l engine.Lock) lockValue {
	var v lockValue
	_ = json.Unmarshal([]byte(l.Value), &v) // this front wrote it
	return v
}

// nameOf returns the name in creatorInfo, which is what a client sent.
func nameOf(l engine.Lock) string {
	var creator struct {
		Name string `json:"name"`
	}
	if json.Unmarshal([]byte(readValue(l).CreatorInfo), &creator) != nil || creator.Name == "" {
		return "another user"
	}
	return creator.Name
}

// grant is the result of create and refresh.
type grant struct {
	LockKey   string            `json:"lockKey"`
	ExpiresAt string            `json:"expiresAt"`
	ExpiresIn float64           `json:"expiresIn"` // minutes
	Requests  []engine.AskedFor `json:"requests,omitempty"`
}

func (s *server) grantOf(l engine.Lock) grant {
	return grant{LockKey: l.ID.String(), ExpiresAt: formatTime(l.ExpiresAt), ExpiresIn: s.Settings.LockTTL.Minutes(), Requests: l.Requests}
}

// readFields returns required texts of the request by their names. The first wrong one is
// the failure. resourceType is judged after all of them.
func (s *server) readFields(c *call, names ...string) (map[string]string, engine.Key, error) {
	if c.message.request == nil {
		return nil, engine.Key{}, failure{http.StatusBadRequest, c.missing, "request is required"}
	}
	fields := map[string]string{}
	for _, name := range names {
		text, problem := c.message.readText(name)
		if problem != "" {
			return nil, engine.Key{}, failure{http.StatusBadRequest, c.missing, problem}
		}
		fields[name] = text
	}
	i := slices.IndexFunc(s.Settings.ResourceTypes, func(t string) bool { return strings.EqualFold(t, fields["resourceType"]) })
	if i < 0 {
		return nil, engine.Key{}, c.fail(http.StatusPreconditionFailed, "Resource type is not valid")
	}
	return fields, engine.Key{Namespace: Namespaces + strings.ToLower(s.Settings.ResourceTypes[i]), Name: fields["resourceId"]}, nil
}

// checkResource asks the content service.
func (s *server) checkResource(ctx context.Context, c *call, api string) error {
	refusal, err := s.check.allow(ctx, c, api)
	if err != nil {
		s.Log.WarnContext(ctx, "the resource check failed", "err", err)
	}
	if refusal != "" {
		return c.fail(http.StatusPreconditionFailed, refusal)
	}
	return nil
}

func (s *server) create(ctx context.Context, c *call) (any, error) {
	if c.message.request != nil {
		if by, _ := c.message.readText("createdBy"); by != c.user.id {
			return nil, c.fail(http.StatusForbidden, "You are not authorized to lock this resource")
		}
	}
	fields, key, err := s.readFields(c, "resourceId", "resourceType", "resourceInfo", "createdBy", "creatorInfo")
	if err != nil {
		return nil, err
	}
	if err := s.checkResource(ctx, c, "createLock"); err != nil {
		return nil, err
	}
	value, err := json.Marshal(lockValue{c.device, fields["resourceType"], fields["resourceInfo"], fields["creatorInfo"]})
	if err != nil {
		return nil, err
	}
	g, err := s.Locks.Acquire(ctx, engine.Acquire{Key: key, Owner: c.user.id, Value: string(value), TTL: s.Settings.LockTTL, Keep: true})
	if err != nil {
		return nil, err
	}
	switch {
	case g.Outcome == engine.Held:
		return nil, failure{http.StatusLocked, "RESOURCE_LOCKED", "The resource is already locked by " + nameOf(g.Lock)}
	case g.Outcome == engine.Kept && readValue(g.Lock).Device != c.device:
		return nil, failure{http.StatusBadRequest, "RESOURCE_SELF_LOCKED", "The resource is already locked by you in a different window/device"}
	}
	return s.grantOf(g.Lock), nil
}

func (s *server) refresh(ctx context.Context, c *call) (any, error) {
	fields, key, err := s.readFields(c, "lockId", "resourceId", "resourceType")
	if err != nil {
		return nil, err
	}
	if err := s.checkResource(ctx, c, "refreshLock"); err != nil {
		return nil, err
	}
	unknown := c.fail(http.StatusUnprocessableEntity, "Invalid lock id")
	id, err := uuid.Parse(fields["lockId"])
	if err != nil || id.String() != fields["lockId"] {
		return nil, unknown
	}
	amendment, err := c.amendment()
	if err != nil {
		return nil, err
	}
	result, err := s.refreshOrRepeat(ctx, c.device, engine.Refresh{
		Key: key, ID: id, Owner: c.user.id, TTL: s.Settings.LockTTL, ResumeWithin: s.Settings.ResumeWithin, Amend: amendment,
	})
	if err != nil {
		return nil, err
	}
	switch result.Outcome { //nolint:exhaustive // the others refresh the lock
	case engine.UnknownID:
		return nil, unknown
	case engine.Held:
		return nil, c.fail(http.StatusForbidden, "You are not authorized to refresh this resource")
	}
	return s.grantOf(result.Lock), nil
}

// refreshOrRepeat refreshes a lock. The id of a resumed one follows from its former id and the device. So that
// device may repeat the call if the answer was lost, and gets the same lock.
func (s *server) refreshOrRepeat(ctx context.Context, device string, r engine.Refresh) (engine.Result, error) {
	r.ResumeAs = uuid.NewSHA1(r.ID, []byte(device))
	result, err := s.Locks.Refresh(ctx, r)
	if err != nil || result.Outcome != engine.UnknownID {
		return result, err
	}
	r.ID, r.ResumeAs, r.ResumeWithin = r.ResumeAs, uuid.Nil, 0
	repeated, err := s.Locks.Refresh(ctx, r)
	if err == nil && repeated.Outcome != engine.Renewed {
		return result, nil
	}
	return repeated, err
}

// amendment makes a resumed lock one of the caller's device. Its other values are those of
// the former lock, whose owner is the same.
func (c *call) amendment() (string, error) {
	members := map[string]string{"deviceId": c.device}
	if c.user.name != "" {
		creator, err := json.Marshal(map[string]string{"name": c.user.name, "id": c.user.id})
		if err != nil {
			return "", err
		}
		members["creatorInfo"] = string(creator)
	}
	text, err := json.Marshal(members)
	return string(text), err
}

func (s *server) retire(ctx context.Context, c *call) (any, error) {
	_, key, err := s.readFields(c, "resourceId", "resourceType")
	if err != nil {
		return nil, err
	}
	if err := s.checkResource(ctx, c, "retireLock"); err != nil {
		return nil, err
	}
	result, err := s.Locks.Release(ctx, key, c.user.id)
	if err != nil {
		return nil, err
	}
	switch result.Outcome { //nolint:exhaustive // Release returns no other
	case engine.Free:
		return nil, c.fail(http.StatusBadRequest, notLocked)
	case engine.Held:
		return nil, c.fail(http.StatusForbidden, "You are not authorized to retire this resource")
	}
	return struct{}{}, nil
}

// force releases a lock of another user. The engine keeps who did it, and why.
func (s *server) force(ctx context.Context, c *call) (any, error) {
	isAdmin := slices.Contains(s.Settings.Admins, c.user.id) || (s.Settings.AdminRole != "" && slices.Contains(c.user.roles, s.Settings.AdminRole))
	if !isAdmin {
		return nil, c.fail(http.StatusForbidden, "You are not authorized to force the release of this resource")
	}
	fields, key, err := s.readFields(c, "resourceId", "resourceType", "reason")
	if err != nil {
		return nil, err
	}
	lock, err := s.Locks.Fetch(ctx, key)
	if err == nil {
		_, err = s.Locks.ForceRelease(ctx, key, lock.ID, engine.Note{By: c.user.id, Reason: fields["reason"]})
	}
	if fault.Is(err, fault.NotFound) {
		return nil, c.fail(http.StatusBadRequest, notLocked)
	}
	return struct{}{}, err
}

// request asks the holder for a lock, and lets the webhook know. Its answer names the
// holder.
func (s *server) request(ctx context.Context, c *call) (any, error) {
	fields, key, err := s.readFields(c, "resourceId", "resourceType", "message")
	if err != nil {
		return nil, err
	}
	lock, err := s.Locks.Ask(ctx, key, engine.AskedFor{By: c.user.id, Name: c.user.name, Message: fields["message"]})
	if fault.Is(err, fault.NotFound) {
		return nil, c.fail(http.StatusBadRequest, notLocked)
	}
	if err != nil {
		return nil, err
	}
	s.notices.add(ctx, notice{
		ID: uuid.NewString(), ResourceID: key.Name, ResourceType: fields["resourceType"],
		LockedBy: lock.Owner, ExpiresAt: formatTime(lock.ExpiresAt),
		RequestedBy: c.user.id, RequesterName: c.user.name, Message: fields["message"],
	})
	return struct {
		LockedBy  string `json:"lockedBy"`
		ExpiresAt string `json:"expiresAt"`
	}{nameOf(lock), formatTime(lock.ExpiresAt)}, nil
}
