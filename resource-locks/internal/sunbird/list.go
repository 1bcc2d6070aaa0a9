package sunbird

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
)

// maxLists is how many lists are sent at once. Each keeps a page of locks, 30 MB at most, until
// its client has read it.
const maxLists = 4

// listed is an entry of the list.
type listed struct {
	LockID       string            `json:"lockId"`
	ResourceID   string            `json:"resourceId"`
	ResourceType string            `json:"resourceType"`
	ResourceInfo string            `json:"resourceInfo"`
	CreatedBy    string            `json:"createdBy"`
	CreatorInfo  string            `json:"creatorInfo"`
	DeviceID     string            `json:"deviceId"`
	CreatedOn    string            `json:"createdOn"`
	ExpiresAt    string            `json:"expiresAt"`
	Requests     []engine.AskedFor `json:"requests,omitempty"`
}

func (s *server) list(ctx context.Context, c *call) (any, error) {
	names, problem := c.message.readFilter()
	if problem != "" {
		return nil, c.fail(http.StatusBadRequest, problem)
	}
	return streamed(func(w io.Writer) (err error) {
		defer fault.Recover(&err)
		if err := s.lists.Acquire(ctx, 1); err != nil {
			return c.fail(http.StatusServiceUnavailable, "Other lists are under way")
		}
		defer s.lists.Release(1)
		encoder := json.NewEncoder(w)
		count, separator := 0, `{"data":[`
		err = s.walk(ctx, names, func(l engine.Lock) error {
			if _, err := io.WriteString(w, separator); err != nil {
				return err
			}
			count, separator = count+1, ","
			v := readValue(l)
			return encoder.Encode(listed{
				LockID: l.ID.String(), ResourceID: l.Name, ResourceType: v.ResourceType, ResourceInfo: v.ResourceInfo,
				CreatedBy: l.Owner, CreatorInfo: v.CreatorInfo, DeviceID: v.Device,
				CreatedOn: formatTime(l.GrantedAt), ExpiresAt: formatTime(l.ExpiresAt), Requests: l.Requests,
			})
		})
		if err != nil {
			return err
		}
		if count == 0 {
			_, err = io.WriteString(w, separator)
		}
		if err == nil {
			_, err = fmt.Fprintf(w, `],"count":%d}`, count)
		}
		return err
	}), nil
}

// walk visits the locks with these names, nil for all. Names are looked up in the namespace of each
// configured resource type, because the names of several namespaces would be searched in all their locks.
func (s *server) walk(ctx context.Context, names []string, visit func(engine.Lock) error) error {
	if names == nil {
		return s.Locks.Walk(ctx, engine.Filter{Namespace: Namespaces, Prefix: true}, visit)
	}
	namespaces := convert.All(s.Settings.ResourceTypes, func(t string) string { return Namespaces + strings.ToLower(t) })
	slices.Sort(namespaces)
	for _, namespace := range slices.Compact(namespaces) {
		if err := s.Locks.Walk(ctx, engine.Filter{Namespace: namespace, Names: names}, visit); err != nil {
			return err
		}
	}
	return nil
}

// readFilter returns the ids of request.filters.resourceId, nil for all.
func (m message) readFilter() (names []string, problem string) {
	var filters map[string]json.RawMessage
	if raw := m.request["filters"]; !isEmpty(raw) && json.Unmarshal(raw, &filters) != nil {
		return nil, `"filters" must be an object`
	}
	var id string
	var ids []*string // a null is no string
	switch raw, sent := filters["resourceId"]; {
	case !sent || json.Unmarshal(raw, &id) == nil && id == "": // null leaves it empty
		return nil, ""
	case id != "":
		names = []string{id}
	case json.Unmarshal(raw, &ids) != nil || slices.Contains(ids, nil):
		return nil, `"filters.resourceId" must be a string or an array of strings`
	default:
		names = convert.All(ids, func(id *string) string { return *id })
	}
	for _, name := range names { // the engine would find it when a part of the list was sent
		if utf8.RuneCountInString(name) > engine.MaxName {
			return nil, fmt.Sprintf(`"filters.resourceId" must have at most %d characters in each id`, engine.MaxName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), ""
}
