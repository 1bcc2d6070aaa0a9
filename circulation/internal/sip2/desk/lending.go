package desk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/keyed"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// refusalCounts is how long a repeat is answered by the refusal of the first message. After it the
// reason may be gone.
const refusalCounts = time.Minute

// outcome is how a check-out or a renewal ended. That of a check-out is kept with its key, so that a
// repeat is answered like the first, also by another instance.
type outcome struct {
	At     time.Time `json:"at"`
	Lent   bool      `json:"lent,omitempty"`
	LoanID string    `json:"loanId,omitempty"`
	// Renewal means that the patron has the item already.
	Renewal bool            `json:"renewal,omitempty"`
	Title   string          `json:"title,omitempty"`
	Media   string          `json:"media,omitempty"`
	Due     library.Instant `json:"due"`
	Says    []string        `json:"says,omitempty"`
	Reason  string          `json:"reason,omitempty"` // a code, for the log

	// repeated means that another message with the key ended so.
	repeated bool
}

// newOutcome is that of a check-out that lent.
func newOutcome(lent checkout.Lent) outcome {
	o := describeCopy(lent.Copy)
	o.Lent, o.LoanID, o.Due = true, lent.LoanID, readLoan(lent.Loan).DueDate
	return o
}

// describeCopy returns an outcome that has not happened yet.
func describeCopy(c library.Copy) outcome {
	return outcome{Title: c.Instance.Title, Media: mediaOf(c.Material)}
}

// lending is one check-out of a machine.
type lending struct {
	desk  *Desk
	visit *visit
	req   checkout.Request

	loan atomic.Pointer[string] // the id that the loan gets, once it is chosen
	// loanClosed means that another message with the key lent, and the item came back since.
	loanClosed bool
	ended      chan struct{} // closed when the rest is set
	outcome
	err error
}

// loanID returns the id of the loan that may exist; "" if there cannot be one.
func (l *lending) loanID() string {
	if id := l.loan.Load(); id != nil {
		return *id
	}
	return ""
}

// lend lends under a key made of the message, or returns how the first message with that key ended.
// An outcome that no longer counts makes the message new, with the next key. Keys name no person:
// they are hashes.
func (l *lending) lend(ctx context.Context) (outcome, error) {
	d := l.desk
	call := okapi.FromContext(ctx)
	sum := sha256.Sum256([]byte(strings.Join([]string{call.Tenant.String(), l.visit.terminal.Login, l.visit.Body()}, "\x00")))
	hash := hex.EncodeToString(sum[:])
	for n := 0; ; n++ {
		var own json.RawMessage // the outcome that this message has made
		answer, err := d.Keyed.Do(ctx, fmt.Sprintf("sip2-%s-%d", hash, n), hash, l.req, func(ctx context.Context, lease checkout.KeyLease) (keyed.Answer, error) {
			answer, err := l.work(ctx, lease)
			own = answer.Loan
			return answer, err
		})
		if err != nil {
			return outcome{}, err
		}
		var o outcome
		if err := json.Unmarshal(answer.Loan, &o); err != nil {
			return outcome{}, fmt.Errorf("reading the kept outcome of a check-out: %w", err)
		}
		worked := bytes.Equal(answer.Loan, own)
		o.repeated = !worked
		counts := worked && !l.loanClosed
		if !worked {
			if counts, err = d.stillCounts(ctx, o); err != nil {
				l.loan.Store(&o.LoanID)
				return outcome{}, fault.Wrap(err, fault.OutcomeUnknown, "The loan of the first message cannot be read")
			}
		}
		if counts {
			return o, nil
		}
	}
}

// work lends under the lease of a key. A refusal is an outcome too. After any error a repeat tries
// again.
func (l *lending) work(ctx context.Context, lease checkout.KeyLease) (keyed.Answer, error) {
	l.loanClosed = false
	l.loan.Store(&lease.LoanID)
	lent, err := l.desk.Keyed.Lend(ctx, l.req, lease)
	var o outcome
	switch {
	case err == nil:
		o = newOutcome(lent)
		l.loanClosed = lease.Taken && !readLoan(lent.Loan).isOpen()
	case fault.Is(err, fault.Invalid):
		l.loan.Store(nil)
		refused := err
		o, err = l.desk.judgeRefusal(ctx, l.visit, l.req, lease, refused)
		if fault.Is(err, fault.LoanChanged) { // by a repeat at another instance, it may be
			lease.Taken = true
			o, err = l.desk.judgeRefusal(ctx, l.visit, l.req, lease, refused)
		}
		if err != nil {
			return keyed.Answer{}, err
		}
	default:
		return keyed.Answer{}, err
	}
	o.At = l.desk.Now()
	kept, err := json.Marshal(o)
	if err != nil {
		return keyed.Answer{}, fmt.Errorf("writing the outcome of a check-out: %w", err)
	}
	return keyed.Answer{LoanID: lease.LoanID, Loan: kept, Refused: !o.Lent}, nil
}

// stillCounts reports whether a kept outcome answers a repeat: a loan while it is open, a refusal for
// refusalCounts. It fails only for a loan. A machine whose clock stands still would else get an answer
// of the day before.
func (d *Desk) stillCounts(ctx context.Context, o outcome) (bool, error) {
	if !o.Lent {
		return d.Now().Before(o.At.Add(refusalCounts)), nil
	}
	loan, exists, err := fault.Found(d.Library.Loan(ctx, o.LoanID))
	return exists && readLoan(loan).isOpen(), err
}

// storedLoan is what machines read of a loan.
type storedLoan struct {
	ID       string             `json:"id"`
	UserID   string             `json:"userId"`
	ItemID   string             `json:"itemId"`
	LoanDate library.Instant    `json:"loanDate"`
	DueDate  library.Instant    `json:"dueDate"`
	Status   library.Status     `json:"status"`
	Action   string             `json:"action"`
	Recalled bool               `json:"dueDateChangedByRecall"`
	Renewals policy.WholeNumber `json:"renewalCount"`
	Metadata struct {
		UpdatedDate     library.Instant `json:"updatedDate"`
		UpdatedByUserID string          `json:"updatedByUserId"`
	} `json:"metadata"`
}

func (l storedLoan) isOpen() bool   { return l.Status.Name == "Open" }
func (l storedLoan) itemID() string { return l.ItemID }

// readLoan reads a stored loan. What cannot be read is zero, because the loan stands anyway.
func readLoan(stored json.RawMessage) storedLoan {
	var loan storedLoan
	_ = json.Unmarshal(stored, &loan)
	return loan
}
