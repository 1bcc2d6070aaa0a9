package sunbird

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"checkoutlock/resource-locks/internal/engine"
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
	return streamed(func(w io.Writer) error {
		if err := s.lists.Acquire(ctx, 1); err != nil {
			return c.fail(http.StatusServiceUnavailable, "Other lists are under way")
		}
		defer s.lists.Release(1)
		encoder := json.NewEncoder(w)
		count, separator := 0, `{"data":[`
		err := s.locks.Walk(ctx, engine.Filter{Namespace: Namespaces, Prefix: true, Names: names}, func(l engine.Lock) error {
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

// readFilter returns the ids of request.filters.resourceId, nil for all.
func (m message) readFilter() (names []string, problem string) {
	var filters map[string]json.RawMessage
	if raw := m.request["filters"]; !isEmpty(raw) && json.Unmarshal(raw, &filters) != nil {
		return nil, `"filters" must be an object`
	}
	var value any
	if raw := filters["resourceId"]; raw != nil {
		_ = json.Unmarshal(raw, &value) // it is part of a valid document
	}
	const allowed = `"filters.resourceId" must be a string or an array of strings`
	switch value := value.(type) {
	case nil:
		return nil, ""
	case string:
		if value == "" {
			return nil, ""
		}
		return []string{value}, ""
	case []any:
		names = []string{}
		for _, element := range value {
			name, isText := element.(string)
			if !isText {
				return nil, allowed
			}
			names = append(names, name)
		}
		slices.Sort(names)
		return slices.Compact(names), ""
	}
	return nil, allowed
}
