package schemas

// TerminalLogin is the body of POST /self-check-terminals/verify.
type TerminalLogin struct {
	Login    string `json:"login"`
	Password string `json:"password"`
}
