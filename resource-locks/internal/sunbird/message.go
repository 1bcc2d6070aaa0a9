package sunbird

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// maxBody bounds a request in bytes.
const maxBody = 1 << 20

// message is the body of a request. Only its request and its message id matter.
type message struct {
	whole   map[string]json.RawMessage
	request map[string]json.RawMessage // nil if it is missing
}

// parseMessage reads a body, which may be empty. The error says what is wrong.
func parseMessage(w http.ResponseWriter, r *http.Request) (message, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return message{}, fmt.Errorf("the body has more than %d bytes", maxBody)
	case err != nil:
		return message{}, errors.New("the body could not be read")
	case len(body) == 0:
		return message{}, nil
	}
	if _, err := jsonschema.Decode(body); err != nil { // also refuses what a decoder would change silently
		return message{}, errors.New(fault.Text(err))
	}
	var m message
	if err := json.Unmarshal(body, &m.whole); err != nil {
		return message{}, errors.New("the body must be a JSON object")
	}
	if raw := m.whole["request"]; !isEmpty(raw) && json.Unmarshal(raw, &m.request) != nil {
		return message{}, errors.New(`"request" must be an object`)
	}
	return m, nil
}

// isEmpty reports whether a member is missing. Clients send an empty text for that too.
func isEmpty(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == `""` }

// messageID is params.msgid, or empty.
func (m message) messageID() string {
	var params struct {
		MessageID string `json:"msgid"`
	}
	_ = json.Unmarshal(m.whole["params"], &params) // of another kind: there is no id
	return params.MessageID
}

// readText returns a required text of the request, or says what is wrong with it.
func (m message) readText(name string) (text, problem string) {
	raw, sent := m.request[name]
	if !sent {
		return "", fmt.Sprintf("%q is required", name)
	}
	var value any
	_ = json.Unmarshal(raw, &value) // it is part of a valid document
	text, isText := value.(string)
	switch {
	case !isText:
		return "", fmt.Sprintf("%q must be a string", name)
	case text == "":
		return "", fmt.Sprintf("%q is not allowed to be empty", name)
	}
	return text, ""
}
