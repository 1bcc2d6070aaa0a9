package wire

// The codes of requests.
const (
	BlockPatron       = "01"
	CheckIn           = "09"
	CheckOut          = "11"
	Hold              = "15"
	ItemInformation   = "17"
	ItemStatusUpdate  = "19"
	PatronStatus      = "23"
	EnablePatron      = "25"
	Renew             = "29"
	EndSession        = "35"
	FeePaid           = "37"
	PatronInformation = "63"
	RenewAll          = "65"
	Login             = "93"
	Resend            = "97" // asks for the last answer again
	MachineStatus     = "99"
)

// ResendRequest is the code of the answer that asks the machine to send its message again.
const ResendRequest = "96"

// Fixed names a field of the part of a request that has no delimiters.
type Fixed string

// The fixed fields, as SIP2 names them.
const (
	CardRetained      Fixed = "card retained"
	Currency          Fixed = "currency type"
	Date              Fixed = "transaction date"
	DueDate           Fixed = "nb due date"
	FeeType           Fixed = "fee type"
	HoldMode          Fixed = "hold mode"
	Language          Fixed = "language"
	NoBlock           Fixed = "no block"
	PasswordAlgorithm Fixed = "PWD algorithm" //nolint:gosec // the name of a field
	PaymentType       Fixed = "payment type"
	PrintWidth        Fixed = "max print width"
	RenewalPolicy     Fixed = "SC renewal policy"
	ReturnDate        Fixed = "return date"
	Status            Fixed = "status code"
	Summary           Fixed = "summary"
	ThirdParty        Fixed = "third party allowed"
	UserAlgorithm     Fixed = "UID algorithm"
	Version           Fixed = "protocol version"
)

const (
	dateWidth = 18
	// codeWidth is the width of a message's code, and idWidth that of a field's id.
	codeWidth = 2
	idWidth   = 2
)

type part struct {
	field Fixed
	width int // in bytes
}

var datePart = part{Date, dateWidth}

// layouts are the fixed parts of requests, by code.
var layouts = map[string][]part{
	BlockPatron:       {{CardRetained, 1}, datePart},
	CheckIn:           {{NoBlock, 1}, datePart, {ReturnDate, dateWidth}},
	CheckOut:          {{RenewalPolicy, 1}, {NoBlock, 1}, datePart, {DueDate, dateWidth}},
	Hold:              {{HoldMode, 1}, datePart},
	ItemInformation:   {datePart},
	ItemStatusUpdate:  {datePart},
	PatronStatus:      {{Language, 3}, datePart},
	EnablePatron:      {datePart},
	Renew:             {{ThirdParty, 1}, {NoBlock, 1}, datePart, {DueDate, dateWidth}},
	EndSession:        {datePart},
	FeePaid:           {datePart, {FeeType, 2}, {PaymentType, 2}, {Currency, 3}},
	PatronInformation: {{Language, 3}, datePart, {Summary, 10}},
	RenewAll:          {datePart},
	Login:             {{UserAlgorithm, 1}, {PasswordAlgorithm, 1}},
	Resend:            nil,
	MachineStatus:     {{Status, 1}, {PrintWidth, 3}, {Version, 4}},
}
