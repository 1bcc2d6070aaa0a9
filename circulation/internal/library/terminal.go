package library

import (
	"slices"

	"checkoutlock/circulation/internal/policy"
)

// Terminal is a self-check machine that speaks SIP2. A field that is empty leaves the choice to the
// service.
type Terminal struct {
	ID      string `json:"id"`
	Version int    `json:"_version"`
	Login   string `json:"login"` // without the tenant
	Name    string `json:"name"`  // for staff, and as AN
	Enabled *bool  `json:"enabled"`
	// HasPassword is what storage knows; a file has passwords of its own.
	HasPassword bool `json:"hasPassword"`

	ServicePointID string `json:"servicePointId"`
	// ServicePointFromLogin lets the machine name its service point when it signs in.
	ServicePointFromLogin bool   `json:"servicePointFromLogin"`
	Institution           string `json:"institution"`      // AO
	InstitutionCheck      string `json:"institutionCheck"` // lenient, strict
	LibraryName           string `json:"libraryName"`      // AM

	TimeZone       string `json:"timeZone"`
	CharacterSet   string `json:"characterSet"`
	LineEnd        string `json:"lineEnd"`        // cr, crlf, lf
	ErrorDetection string `json:"errorDetection"` // auto, required, off
	// PasswordAlways means that each message has the terminal's password (AC).
	PasswordAlways bool `json:"passwordAlways"`
	// PatienceMs is how long the machine waits for an answer.
	PatienceMs policy.WholeNumber `json:"patienceMs"`
	// Messages are the codes of the requests that it may send; nil means all.
	Messages []string `json:"messages"`
	// Addresses are those from which it may connect, as addresses or networks; none means all.
	Addresses []string `json:"addresses"`

	PatronIdentifiers []string `json:"patronIdentifiers"` // barcode, externalSystemId, username
	PatronPasswords   string   `json:"patronPasswords"`   // checked, notChecked
	NoBlock           string   `json:"noBlock"`           // judge, lend, refuse
	SameItem          string   `json:"sameItem"`          // renew, confirm, refuse
	Renewals          *bool    `json:"renewals"`
	Language          string   `json:"language"` // en, de, es
	NameForm          string   `json:"nameForm"` // firstLast, lastFirst
	PersonalData      bool     `json:"personalData"`
	DueDateForm       string   `json:"dueDateForm"`     // sip, text
	DestinationForm   string   `json:"destinationForm"` // name, code: of the service point in CT
	PrintTexts        bool     `json:"printTexts"`      // AG for each AF
	AlertAlways       bool     `json:"alertAlways"`     // CV 00 where there is no alert

	Bins  []BinRule         `json:"bins"`
	Texts map[string]string `json:"texts"` // in place of the service's, by code
}

// BinRule names the bin of a returned item. Each field that is not empty must match.
type BinRule struct {
	Alert        string `json:"alert"` // CV
	Destination  string `json:"destination"`
	Location     string `json:"location"`
	MaterialType string `json:"materialType"`
	Bin          string `json:"bin"`
}

// IsEnabled reports whether the machine may sign in.
func (t Terminal) IsEnabled() bool { return t.Enabled == nil || *t.Enabled }

// Renews reports whether the machine may renew loans.
func (t Terminal) Renews() bool { return t.Renewals == nil || *t.Renewals }

// Allows reports whether the machine may send requests with the code.
func (t Terminal) Allows(code string) bool {
	return t.Messages == nil || slices.Contains(t.Messages, code)
}

// PINCheck is what came of the comparison of a patron's PIN.
type PINCheck int

// The zero PINCheck means that none was made.
const (
	PINRight PINCheck = iota + 1
	PINWrong
	PINNotSet // the patron has no PIN
)
