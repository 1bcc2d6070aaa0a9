package jsonschema_test

import (
	"encoding/json"
	"testing"

	"checkoutlock/schemas"
	"checkoutlock/schemas/jsonschema"
)

func TestUnmarshalExact_IgnoresNamesInAnotherCase(t *testing.T) {
	t.Parallel()
	var got schemas.QueuedRequest
	err := jsonschema.UnmarshalExact([]byte(
		`{"requesterId":"ann","requesterid":"ben","ITEMID":"x","position":7,"more":[{}]}`,
	), &got)
	if want := (schemas.QueuedRequest{RequesterID: "ann", Position: 7}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	var list []schemas.QueuedRequest
	err = jsonschema.UnmarshalExact([]byte(`[{"ID":"x","position":1}]`), &list)
	if err != nil || list[0] != (schemas.QueuedRequest{Position: 1}) {
		t.Errorf("a list: got %+v, %v", list, err)
	}
	if err := jsonschema.UnmarshalExact([]byte(`{"position":1}{"position":2}`), &got); err == nil {
		t.Error("two documents are no error")
	}
	var number struct {
		Digits json.Number `json:"digits"`
		Name   string      `json:"name"`
	}
	if err := jsonschema.UnmarshalExact([]byte(`{"digits":"7","NAME":"x"}`), &number); err == nil {
		t.Errorf("a text as a number is read as %+v", number)
	}
}
