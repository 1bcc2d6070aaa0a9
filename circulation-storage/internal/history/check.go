package history

import (
	"checkoutlock/schemas"
	"checkoutlock/schemas/jsonschema"
)

// Report checks reports. The caller has checked the texts with jsonschema.Decode: they
// are valid UTF-8 without NUL.
var Report = jsonschema.For[schemas.CheckOutReport]("check-out-report")

var past = jsonschema.For[schemas.PastCheckOut]("past-check-out")

// Check returns an Invalid fault with up to 100 details, each with a place such as
// checkOuts[3].id.
func Check(r schemas.CheckOutReport) error { return Report.Check(&r) }

// CheckOutcome returns the rule that an outcome breaks, "" if none.
func CheckOutcome(outcome string) string { return past.BrokenRule("outcome", outcome) }
