package records

import (
	"encoding/json"
	"fmt"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// requestBatchSchema is the JSON Schema of a list of requests.
const requestBatchSchema = "request-batch"

// ParseRequestBatch reads the requests that are to be written together from
// {"requests":[…]}, and settles their ids as Parse does. An Invalid fault says
// which ones are wrong; an id that comes twice is one too.
func ParseRequestBatch(body []byte) ([]Record, error) {
	doc, err := Decode(body)
	if err != nil {
		return nil, err
	}
	if err := jsonschema.Check(requestBatchSchema, map[string]any(doc)); err != nil {
		return nil, err
	}
	list, _ := doc["requests"].([]any)
	requests := make([]Record, len(list))
	first := map[string]int{}
	for i, v := range list {
		raw, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("writing requests[%d]: %w", i, err)
		}
		if requests[i], err = Request().Parse(raw, ""); err != nil {
			return nil, fmt.Errorf("requests[%d]: %w", i, err)
		}
		id := requests[i].ID()
		if before, ok := first[id]; ok {
			return nil, fault.StorageRefusal(fmt.Sprintf("requests[%d] has the id of requests[%d]: each request may come once", i, before),
				fault.Param(fmt.Sprintf("requests[%d].id", i), id))
		}
		first[id] = i
	}
	return requests, nil
}
