package records

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"checkoutlock/schemas/fault"
)

// The ids of mod-patron-blocks' conditions, which are the same in every tenant.
const (
	ItemsChargedOut      = "3d7c52dc-c732-4223-8bf8-e5917801386f"
	LostItems            = "72b67965-5b73-4840-bc0b-be8f3f6e047e"
	OverdueItems         = "584fbd4f-6a34-4730-a6ca-73a6a6a9d845"
	OverdueRecalls       = "e5b45031-a202-4abb-917b-e1df9346fe2c"
	DaysOfOverdueRecall  = "08530ac4-07f2-48e6-9dda-a97bc2bf7053"
	OutstandingFeesFines = "cf7a0d5f-a327-4ca1-aa9e-dc55ec006b8a"
)

// PatronBlockCondition says what a limit blocks, and with which message (mod-patron-blocks).
var PatronBlockCondition = Type{
	Name: "patron block condition", Path: "/patron-block-conditions", Collection: "patronBlockConditions",
	Table: "patron_block_conditions", Schema: "patron-block-condition", Permission: "patron-blocks.patron-block-conditions", Interface: "patron-block-conditions 0.1",
	Prepare: preparePatronBlockCondition,
	Indexes: newIndexes(fields{
		Text: {"name", "message", "valueType"}, Boolean: {"blockBorrowing", "blockRenewals", "blockRequests"},
	}),
}

// PatronBlockLimit is a limit of a patron group for one condition (mod-patron-blocks). The
// group need not exist.
var PatronBlockLimit = Type{
	Name: "patron block limit", Path: "/patron-block-limits", Collection: "patronBlockLimits",
	Table: "patron_block_limits", Schema: "patron-block-limit", Permission: "patron-blocks.patron-block-limits", Interface: "patron-block-limits 0.1",
	Prepare:    preparePatronBlockLimit,
	Indexes:    newIndexes(fields{Number: {"value"}}, "patronGroupId", "conditionId"),
	References: []Reference{newReference("patron_block_limits", "conditionId", "patron_block_conditions")},
}

// preparePatronBlockCondition refuses a block without a message, and a message without a
// block, with mod-patron-blocks' texts.
func preparePatronBlockCondition(_ context.Context, _ Reader, w Write) error {
	hasMessage := strings.TrimSpace(w.Record.Text("message")) != ""
	blocks := false
	for _, action := range []string{"blockBorrowing", "blockRenewals", "blockRequests"} {
		if w.Record[action] == nil {
			w.Record[action] = false
		}
		blocks = blocks || w.Record[action] == true
	}
	about := fault.Param("patron block condition id", w.Record.ID())
	switch {
	case blocks && !hasMessage:
		return fault.StorageRefusal("Message to be displayed is a required field if one or more blocked actions selected", about)
	case hasMessage && !blocks:
		return fault.StorageRefusal("One or more blocked actions must be selected for message to be displayed to be used", about)
	}
	return nil
}

// preparePatronBlockLimit refuses a value out of range, with mod-patron-blocks' texts.
func preparePatronBlockLimit(_ context.Context, _ Reader, w Write) error {
	sent, ok := w.Record["value"].(json.Number)
	if !ok {
		return nil
	}
	value, err := strconv.ParseFloat(sent.String(), 64)
	outside := err != nil || value < 0
	message := "Must be blank or an integer from 0 to 999999"
	if strings.EqualFold(w.Record.Text("conditionId"), OutstandingFeesFines) {
		message = "Must be blank or a number from 0.00 to 999999.99"
		outside = outside || value > 999999.99
	} else {
		outside = outside || value > 999999 || value != float64(int(value))
	}
	if outside {
		return fault.StorageRefusal(message, fault.Param("value", fault.Shown(sent)))
	}
	return nil
}
