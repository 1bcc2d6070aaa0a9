package schemas

// Bounds of what is known of self-check machines.
const (
	MaxReportedTerminals = 500 // terminals in one report
	MaxReportedNotes     = 100 // notes in one report
	// MaxListedTerminals is how many terminals staff see.
	MaxListedTerminals = 1000
	// MaxTerminalNotes is how many notes of a library are kept, TerminalNoteDays for how many days.
	MaxTerminalNotes = 500
	TerminalNoteDays = 30
	// TerminalStateDays is how long the last message of a terminal is kept.
	TerminalStateDays = 7
	// TerminalCountsMs is how long a report about connections counts.
	TerminalCountsMs = 45_000
	// TerminalSlots cover an hour, with TerminalSlotMinutes each.
	TerminalSlots       = 12
	TerminalSlotMinutes = 5
)

// TerminalReport is the body of POST /self-check-activity: what terminals of one library did in one
// instance of circulation.
type TerminalReport struct {
	Terminals []TerminalState `json:"terminals,omitempty"` // at most MaxReportedTerminals
	Notes     []TerminalNote  `json:"notes,omitempty"`     // at most MaxReportedNotes
}

// TerminalState is what one self-check machine does. A report has ages in place of dates, so that no
// clock but the database's counts.
type TerminalState struct {
	Login       string `json:"login"`
	Connections int    `json:"connections"` // open ones
	// Address and ConnectedMs are of the newest open connection: from where, and since how long.
	Address       string `json:"address,omitempty"`
	ConnectedMs   int64  `json:"connectedMs,omitempty"`
	ConnectedDate string `json:"connectedDate,omitempty"` // storage sets it
	// LastMessage is the code of the last message; empty before the first.
	LastMessage string `json:"lastMessage,omitempty"`
	LastMs      int64  `json:"lastMs,omitempty"`
	LastDate    string `json:"lastDate,omitempty"` // storage sets it
	// Attention is what the machine said of itself: one of the constants, or empty.
	Attention string `json:"attention,omitempty"`
	// Counts are by TerminalSlotMinutes, the last ones first; at most TerminalSlots.
	Counts []TerminalCounts `json:"counts,omitempty"`
	// LastHour is the sum of the last hour, of all instances. Storage sets it.
	LastHour *TerminalCounts `json:"lastHour,omitempty"`
	// Instances are those with open connections, by name. Storage sets it.
	Instances []string `json:"instances,omitempty"`
}

// TerminalCounts count what happened at one self-check machine.
type TerminalCounts struct {
	CheckOuts int `json:"checkOuts,omitempty"` // answered with OK
	Refused   int `json:"refused,omitempty"`   // messages of all kinds
	// Repeated are messages that got the answer of the same message before.
	Repeated    int `json:"repeated,omitempty"`
	Unreadable  int `json:"unreadable,omitempty"` // lines that were answered with 96
	WrongLogins int `json:"wrongLogins,omitempty"`
}

// Add adds n.
func (c *TerminalCounts) Add(n TerminalCounts) {
	c.CheckOuts += n.CheckOuts
	c.Refused += n.Refused
	c.Repeated += n.Repeated
	c.Unreadable += n.Unreadable
	c.WrongLogins += n.WrongLogins
}

// What a machine says of itself.
const (
	OutOfPaper   = "outOfPaper"
	ShuttingDown = "shuttingDown"
)

// The kinds of notes.
const (
	// NoteOffLine is an item that was taken while the machine was off-line, and that was not lent.
	NoteOffLine = "offLine"
	// NoteBlockCard is a card that the machine wants to be blocked.
	NoteBlockCard = "blockCard"
	// NoteCancelled is a check-out that the machine takes back, because it could not unlock the item.
	NoteCancelled = "cancelled"
	// NoteUnknownOutcome is a check-out of which it is not known whether it lent.
	NoteUnknownOutcome = "unknownOutcome"
)

// TerminalNote is what staff should look at.
type TerminalNote struct {
	// ID is the same for a note that is reported again, which is kept once.
	ID          string `json:"id"`
	AgoMs       int64  `json:"agoMs,omitempty"` // at most MaxHistoryMs
	Date        string `json:"date,omitempty"`  // storage sets it
	Login       string `json:"login"`
	Kind        string `json:"kind"`
	Code        string `json:"code,omitempty"` // why, as in the log
	UserBarcode string `json:"userBarcode,omitempty"`
	ItemBarcode string `json:"itemBarcode,omitempty"`
	LoanID      string `json:"loanId,omitempty"`
	Instance    string `json:"instance,omitempty"` // storage sets it
}

// TerminalActivity is what all instances reported: terminals by login, and notes, newest first.
type TerminalActivity struct {
	Terminals []TerminalState `json:"terminals"` // at most MaxListedTerminals
	Notes     []TerminalNote  `json:"notes"`     // at most MaxTerminalNotes
}
