package loans_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/loans"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const loanID = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378"

// changer records the changes that it is sent. It has no other methods.
type changer struct {
	loans.Changer
	sent    []schemas.LoanChange
	answers []error // in turn; afterwards it succeeds
}

func (c *changer) ChangeLoan(_ context.Context, id string, change schemas.LoanChange) error {
	if id != loanID {
		return librarytest.ErrNone
	}
	c.sent = append(c.sent, change)
	if len(c.answers) == 0 {
		return nil
	}
	err := c.answers[0]
	c.answers = c.answers[1:]
	return err
}

func (c *changer) service() *loans.Service {
	return &loans.Service{Changer: c, Log: slog.New(slog.DiscardHandler)}
}

// read reads a wish from the body of a request.
func read[W loans.Wish](t *testing.T, body string) loans.Wish {
	t.Helper()
	var w W
	if err := json.Unmarshal([]byte(body), &w); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestChange_AsksStorageForOneChange(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		wish loans.Wish
		want schemas.LoanChange
	}{
		"staff info": {
			loans.AddInfo{Action: "staffInfoAdded", ActionComment: "c"},
			schemas.LoanChange{Action: "staffInfoAdded", Comment: "c"},
		},
		"patron info": {
			loans.AddInfo{Action: "patronInfoAdded", ActionComment: "c"},
			schemas.LoanChange{Action: "patronInfoAdded", Comment: "c"},
		},
		"due date": {
			read[loans.ChangeDueDate](t, `{"dueDate":"2026-04-01T12:00:00+02:00"}`),
			schemas.LoanChange{Action: "dueDateChanged", Date: "2026-04-01T10:00:00.000Z"},
		},
		"claimed returned": {
			read[loans.ClaimReturned](t, `{"itemClaimedReturnedDateTime":"2026-04-01T10:00:00Z","comment":"c"}`),
			schemas.LoanChange{Action: "claimedReturned", Date: "2026-04-01T10:00:00.000Z", Comment: "c"},
		},
		"declared lost": {
			read[loans.DeclareLost](t, `{"declaredLostDateTime":"2026-04-01T10:00:00Z","comment":"c","servicePointId":"`+
				librarytest.DeskID+`"}`),
			schemas.LoanChange{Action: "declaredLost", Date: "2026-04-01T10:00:00.000Z", Comment: "c"},
		},
		"declared lost now": {
			loans.DeclareLost{ServicePointID: librarytest.DeskID}, schemas.LoanChange{Action: "declaredLost"},
		},
		"missing": {loans.DeclareMissing{Comment: "c"}, schemas.LoanChange{Action: "markedMissing", Comment: "c"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &changer{}
			if err := c.service().Change(t.Context(), loanID, tt.wish); err != nil || len(c.sent) != 1 {
				t.Fatalf("got %v after %+v", err, c.sent)
			}
			got := c.sent[0]
			if !schemas.IsUUID(got.ID) {
				t.Errorf("the change has the id %q", got.ID)
			}
			if got.ID = ""; got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestChange_RefusesWhatLacksAProperty(t *testing.T) {
	t.Parallel()
	const noInfo = "An action of type patronInfoAdded or staffInfoAdded, with associated actionComment, required in " +
		"order to add info"
	tests := map[string]struct {
		wish         loans.Wish
		about, says  string
		hasParameter bool // with a value
	}{
		"no info":        {wish: loans.AddInfo{}, about: "action", says: noInfo},
		"another action": {wish: loans.AddInfo{Action: "renewed", ActionComment: "c"}, about: "action", says: noInfo},
		"a blank comment": {
			wish: loans.AddInfo{Action: "staffInfoAdded", ActionComment: " "}, about: "action", says: noInfo,
		},
		"no due date": {
			wish: read[loans.ChangeDueDate](t, `{}`), about: "dueDate",
			says: "A new due date is required in order to change the due date",
		},
		"a due date of null": {
			wish: read[loans.ChangeDueDate](t, `{"dueDate":null}`), about: "dueDate",
			says: "A new due date is required in order to change the due date",
		},
		"no claimed date": {
			wish: loans.ClaimReturned{Comment: "c"}, about: "itemClaimedReturnedDateTime",
			says: "Item claimed returned date is a required field",
		},
		"no service point": {
			wish: loans.DeclareLost{Comment: "c"}, about: "servicePointId",
			says: "A service point is required for item to be declared lost",
		},
		"a service point's name": {
			wish: loans.DeclareLost{ServicePointID: "Desk"}, about: "servicePointId", says: "servicePointId must be a UUID",
			hasParameter: true,
		},
		"no comment": {wish: loans.DeclareMissing{}, about: "comment", says: "Comment is a required field"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &changer{}
			err := c.service().Change(t.Context(), loanID, tt.wish)
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != fault.Invalid || len(f.Details) != 1 || f.Details[0].Message != tt.says ||
				f.Details[0].Code != "INVALID" {
				t.Fatalf("got %v, want %q", err, tt.says)
			}
			if p := f.Details[0].Parameters[0]; p.Key != tt.about || (p.Value != nil) != tt.hasParameter {
				t.Errorf("it is about %+v, want %s", p, tt.about)
			}
			if c.sent != nil {
				t.Errorf("storage was sent %+v", c.sent)
			}
		})
	}
}

func TestChange_IsSentAgainUnderItsIDUntilTheOutcomeIsKnown(t *testing.T) {
	t.Parallel()
	lost := fault.New(fault.Unavailable, "no answer")
	closed := fault.Validation(fault.Refusal("", "Loan is closed"))
	for name, tt := range map[string]struct {
		answers []error
		want    error
		tries   int
	}{
		"an answer was lost": {answers: []error{lost, fault.New(fault.Timeout, "late")}, tries: 3},
		"refused":            {answers: []error{closed}, want: closed, tries: 1},
		"refused later":      {answers: []error{lost, closed}, want: closed, tries: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &changer{answers: tt.answers}
			if err := c.service().Change(t.Context(), loanID, loans.DeclareMissing{Comment: "c"}); !errors.Is(err, tt.want) ||
				len(c.sent) != tt.tries {
				t.Fatalf("got %v after %d tries, want %v after %d", err, len(c.sent), tt.want, tt.tries)
			}
			for _, sent := range c.sent {
				if sent != c.sent[0] {
					t.Errorf("the repeat is %+v, want %+v", sent, c.sent[0])
				}
			}
		})
	}
}

func TestChange_KeepsTheFaultOfAnUnknownLoan(t *testing.T) {
	t.Parallel()
	if err := (&changer{}).service().Change(t.Context(), librarytest.OtherID,
		loans.DeclareMissing{Comment: "c"}); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v, want %s", err, fault.NotFound)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := &changer{}
	if err := c.service().Change(ctx, loanID, loans.DeclareMissing{Comment: "c"}); !errors.Is(err, context.Canceled) ||
		c.sent != nil {
		t.Errorf("got %v after %+v, want nothing sent for a desk that left", err, c.sent)
	}
}
