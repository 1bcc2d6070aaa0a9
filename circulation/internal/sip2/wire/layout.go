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

// layoutOf returns the fixed part of a request; false for a code of no request.
func layoutOf(code string) ([]part, bool) {
	date := part{Date, dateWidth}
	switch code {
	case BlockPatron:
		return []part{{CardRetained, 1}, date}, true
	case CheckIn:
		return []part{{NoBlock, 1}, date, {ReturnDate, dateWidth}}, true
	case CheckOut:
		return []part{{RenewalPolicy, 1}, {NoBlock, 1}, date, {DueDate, dateWidth}}, true
	case Hold:
		return []part{{HoldMode, 1}, date}, true
	case ItemInformation, ItemStatusUpdate, EnablePatron, EndSession, RenewAll:
		return []part{date}, true
	case PatronStatus:
		return []part{{Language, 3}, date}, true
	case Renew:
		return []part{{ThirdParty, 1}, {NoBlock, 1}, date, {DueDate, dateWidth}}, true
	case FeePaid:
		return []part{date, {FeeType, 2}, {PaymentType, 2}, {Currency, 3}}, true
	case PatronInformation:
		return []part{{Language, 3}, date, {Summary, 10}}, true
	case Login:
		return []part{{UserAlgorithm, 1}, {PasswordAlgorithm, 1}}, true
	case MachineStatus:
		return []part{{Status, 1}, {PrintWidth, 3}, {Version, 4}}, true
	case Resend:
		return nil, true
	default:
		return nil, false
	}
}
