package history

import (
	"fmt"
	"regexp"
	"strconv"
	"unicode/utf8"

	"github.com/google/uuid"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const (
	// maxCount is far more than the waiting check-outs of an instance, or the repeats of
	// a commit.
	maxCount = 1_000_000
	// maxDetails bounds the answer to a report with many faults.
	maxDetails = 100
)

var outcomePattern = regexp.MustCompile(`^[a-z_]{1,40}$`)

// Check returns an Invalid fault with up to 100 details, each with a place such as
// checkOuts[3].id. The caller has checked the texts with jsonschema.Decode: they are valid
// UTF-8 without NUL.
func Check(r schemas.CheckOutReport) error {
	var c checker
	c.checkNumber("waiting", int64(r.Waiting), maxCount)
	switch n := len(r.CheckOuts); {
	case r.CheckOuts == nil:
		c.refuse("checkOuts", "", "is required: a list, which may be empty")
	case n > schemas.MaxHistoryBatch:
		c.refuse("checkOuts", strconv.Itoa(n), "must have at most %d elements", schemas.MaxHistoryBatch)
	default:
		for i, past := range r.CheckOuts {
			c.checkPast(fmt.Sprintf("checkOuts[%d].", i), past)
		}
	}
	return c.wrong.Err()
}

// CheckOutcome returns the rule that an outcome breaks, "" if none.
func CheckOutcome(outcome string) string {
	if outcomePattern.MatchString(outcome) {
		return ""
	}
	return "must match " + outcomePattern.String()
}

// checker gathers faults.
type checker struct{ wrong fault.List }

func (c *checker) refuse(key, value, rule string, args ...any) {
	if len(c.wrong) < maxDetails {
		c.wrong.Add(key, fmt.Sprintf(rule, args...), value)
	}
}

func (c *checker) checkPast(at string, p schemas.PastCheckOut) {
	if !schemas.IsUUID(p.ID) || p.ID == uuid.Nil.String() {
		c.refuse(at+"id", p.ID, "must be a UUID and not the nil one")
	}
	c.checkNumber(at+"agoMs", p.AgoMs, schemas.MaxHistoryMs)
	if rule := CheckOutcome(p.Outcome); rule != "" {
		c.refuse(at+"outcome", p.Outcome, "%s", rule)
	}
	c.checkText(at+"code", p.Code, schemas.MaxHistoryText)
	c.checkText(at+"reason", p.Reason, schemas.MaxHistoryReason)
	c.checkText(at+"userBarcode", p.UserBarcode, schemas.MaxHistoryText)
	c.checkText(at+"itemBarcode", p.ItemBarcode, schemas.MaxHistoryText)
	c.checkID(at+"userId", p.UserID)
	c.checkID(at+"loanId", p.LoanID)
	c.checkID(at+"servicePointId", p.ServicePointID)
	if p.WaitMs != nil {
		c.checkNumber(at+"waitMs", int64(*p.WaitMs), schemas.MaxHistoryMs)
	}
	c.checkNumber(at+"tookMs", int64(p.TookMs), schemas.MaxHistoryMs)
	c.checkNumber(at+"repeats", int64(p.Repeats), maxCount)
	c.checkText(at+"requestId", p.RequestID, schemas.MaxHistoryText)
}

func (c *checker) checkNumber(key string, value, most int64) {
	if value < 0 || value > most {
		c.refuse(key, strconv.FormatInt(value, 10), "must be from 0 to %d", most)
	}
}

func (c *checker) checkText(key, value string, most int) {
	if n := utf8.RuneCountInString(value); n > most {
		c.refuse(key, value, "must have at most %d characters, not %d", most, n)
	}
}

func (c *checker) checkID(key, value string) {
	if value != "" && !schemas.IsUUID(value) {
		c.refuse(key, value, "must be a UUID")
	}
}
