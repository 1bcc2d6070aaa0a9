package schemas

// TerminalLogin is the body of POST /self-check-terminals/verify.
type TerminalLogin struct {
	Login    string `json:"login"`
	Password string `json:"password"`
}

// PatronPIN is the body of FOLIO's /patron-pin and /patron-pin/verify.
type PatronPIN struct {
	ID  string `json:"id"` // the patron's
	PIN string `json:"pin,omitempty"`
}

// PINNotSet is the code of the error for a patron without a PIN; a wrong one has that of
// fault.LoginRefused.
const PINNotSet = "PIN_NOT_SET"
