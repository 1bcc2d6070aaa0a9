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
	// maxCount is far more than can wait in one instance, or be sent again for one
	// check-out.
	maxCount = 1_000_000
	// maxDetails keeps the answer to a report of which nothing is right readable.
	maxDetails = 100
)

var outcomePattern = regexp.MustCompile(`^[a-z_]{1,40}$`)

// Check says everything that is wrong with a report in one Invalid fault, up to 100
// things, and where, such as checkOuts[3].id. Texts must be valid UTF-8 without NUL already, as
// jsonschema.Decode makes sure.
func Check(r schemas.CheckOutReport) error {
	var c checker
	c.number("waiting", int64(r.Waiting), maxCount)
	switch n := len(r.CheckOuts); {
	case r.CheckOuts == nil:
		c.refuse("checkOuts", "", "is required: a list, which may be empty")
	case n > schemas.MaxHistoryBatch:
		c.refuse("checkOuts", strconv.Itoa(n), "must have at most %d elements", schemas.MaxHistoryBatch)
	default:
		for i, past := range r.CheckOuts {
			c.checkOut(fmt.Sprintf("checkOuts[%d].", i), past)
		}
	}
	return c.wrong.Err()
}

// CheckOutcome returns what is wrong with the word for how a check-out ended, ""
// if nothing is.
func CheckOutcome(outcome string) string {
	if outcomePattern.MatchString(outcome) {
		return ""
	}
	return "must match " + outcomePattern.String()
}

// checker gathers what is wrong.
type checker struct{ wrong fault.List }

func (c *checker) refuse(key, value, rule string, args ...any) {
	if len(c.wrong) < maxDetails {
		c.wrong.Add(key, fmt.Sprintf(rule, args...), value)
	}
}

func (c *checker) checkOut(at string, p schemas.PastCheckOut) {
	if !schemas.IsUUID(p.ID) || p.ID == uuid.Nil.String() {
		c.refuse(at+"id", p.ID, "must be a UUID and not the nil one")
	}
	c.number(at+"agoMs", p.AgoMs, schemas.MaxHistoryMs)
	if rule := CheckOutcome(p.Outcome); rule != "" {
		c.refuse(at+"outcome", p.Outcome, "%s", rule)
	}
	c.text(at+"code", p.Code, schemas.MaxHistoryText)
	c.text(at+"reason", p.Reason, schemas.MaxHistoryReason)
	c.text(at+"userBarcode", p.UserBarcode, schemas.MaxHistoryText)
	c.text(at+"itemBarcode", p.ItemBarcode, schemas.MaxHistoryText)
	c.id(at+"userId", p.UserID)
	c.id(at+"loanId", p.LoanID)
	c.id(at+"servicePointId", p.ServicePointID)
	if p.WaitMs != nil {
		c.number(at+"waitMs", int64(*p.WaitMs), schemas.MaxHistoryMs)
	}
	c.number(at+"tookMs", int64(p.TookMs), schemas.MaxHistoryMs)
	c.number(at+"repeats", int64(p.Repeats), maxCount)
	c.text(at+"requestId", p.RequestID, schemas.MaxHistoryText)
}

func (c *checker) number(key string, value, most int64) {
	if value < 0 || value > most {
		c.refuse(key, strconv.FormatInt(value, 10), "must be from 0 to %d", most)
	}
}

func (c *checker) text(key, value string, most int) {
	if n := utf8.RuneCountInString(value); n > most {
		c.refuse(key, value, "must have at most %d characters, not %d", most, n)
	}
}

func (c *checker) id(key, value string) {
	if value != "" && !schemas.IsUUID(value) {
		c.refuse(key, value, "must be a UUID")
	}
}
