package locktopus

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// The actions of clients.
const (
	actionLock    = "lock"
	actionRelease = "release"
)

// protocolError is a client's mistake. Its text is answered in a frame before the close.
type protocolError string

func (e protocolError) Error() string { return string(e) }

func errProtocol(format string, args ...any) error {
	return protocolError(fmt.Sprintf(format, args...))
}

// request is a message of a client. The resources are read after the state is checked,
// because a wrong state is the first thing to answer.
type request struct {
	Action    string          `json:"action"`
	Resources json.RawMessage `json:"resources"`
}

// response is a message of the server.
type response struct {
	ID     string `json:"id"`
	Action string `json:"action"`
	State  state  `json:"state"`
}

// parseRequest reads a frame. It refuses texts that a decoder would change silently, for
// example half of a surrogate pair, because two names must not become one.
func parseRequest(frame []byte) (request, error) {
	var r request
	err := json.Unmarshal(frame, &r)
	var wrongType *json.UnmarshalTypeError
	if err != nil && !errors.As(err, &wrongType) {
		return r, errProtocol("the message cannot be read: The body is not valid JSON: %v", err)
	}
	if err := jsonschema.CheckTexts(frame); err != nil {
		return r, errProtocol("the message cannot be read: %s", fault.Text(err))
	}
	if err != nil {
		return r, errProtocol("the message must be an object whose action is a text: %v", err)
	}
	return r, nil
}

// parseResources reads what a lock message asks for.
func parseResources(raw json.RawMessage) ([]engine.Resource, error) {
	var list []struct {
		Type string    `json:"type"`
		Path []*string `json:"path"`
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, errProtocol("resources must be a list of objects with type and path, path a list of texts: %v", err)
		}
	}
	if len(list) == 0 {
		return nil, errProtocol("a lock needs at least one resource")
	}
	if len(list) > engine.MaxResources {
		return nil, errProtocol("a lock has %d resources, allowed: %d", len(list), engine.MaxResources)
	}
	resources := make([]engine.Resource, len(list))
	for i, entry := range list {
		path := make([]string, len(entry.Path))
		for j, segment := range entry.Path {
			if segment == nil {
				return nil, errProtocol("resources[%d].path[%d] is null, allowed: a text", i, j)
			}
			path[j] = *segment
		}
		write, err := parseType(entry.Type)
		if err != nil {
			return nil, err
		}
		resources[i] = engine.Resource{Path: path, Write: write}
	}
	return resources, nil
}

func parseType(name string) (write bool, err error) {
	switch strings.ToLower(name) {
	case "write", "w":
		return true, nil
	case "read", "r":
		return false, nil
	}
	return false, errProtocol("cannot build resource lock: invalid lock type: %s", fault.Shown(name))
}
