package wire

import (
	"strings"
	"time"
)

// Refusal returns the answer that refuses r, with texts for the screen. institution is that of
// the terminal, "" for the one of the request. at is the time of the answer, in the terminal's zone.
func Refusal(r Request, institution string, at time.Time, texts ...string) Answer {
	a := refusalOf(r, FormatDate(at))
	for _, id := range fieldsOf(a.Code) {
		switch id {
		case "AO":
			a.Add(id, r.Institution(institution))
		case "CV":
			a.Add(id, "99")
		case "AA", "AB":
			a.Add(id, r.Field(id))
		default:
			a.Add(id, "")
		}
	}
	if a.Code != ResendRequest && a.Code != "94" {
		a.Say(texts...)
	}
	a.Result = Refused
	return a
}

// noCounts stands for the numbers of requests and loans of a patron; fees are not kept.
const noCounts = "000000000000    00000000"

func refusalOf(r Request, date string) Answer {
	denied := "YYYY" + strings.Repeat(" ", 10)
	switch r.Code {
	case CheckOut:
		return NewAnswer("12", "0NUN", date)
	case CheckIn:
		return NewAnswer("10", "0NUY", date)
	case Renew:
		return NewAnswer("30", "0NUN", date)
	case RenewAll:
		return NewAnswer("66", "000000000", date)
	case PatronStatus, BlockPatron:
		return NewAnswer("24", denied, r.Language(), date)
	case EnablePatron:
		return NewAnswer("26", denied, r.Language(), date)
	case PatronInformation:
		return NewAnswer("64", denied, r.Language(), date, noCounts)
	case EndSession:
		return NewAnswer("36", "N", date)
	case ItemInformation:
		return NewAnswer("18", "010101", date)
	case ItemStatusUpdate:
		return NewAnswer("20", "0", date)
	case Hold:
		return NewAnswer("16", "0N", date)
	case FeePaid:
		return NewAnswer("38", "N", date)
	case Login:
		return NewAnswer("94", "0")
	default:
		return NewAnswer(ResendRequest)
	}
}

// fieldsOf returns the fields of a refusal before its texts.
func fieldsOf(code string) []string {
	switch code {
	case "12", "30":
		return []string{"AO", "AA", "AB", "AJ", "AH"}
	case "10":
		return []string{"AO", "AB", "AQ", "CV"}
	case "16":
		return []string{"AO", "AA", "AB"}
	case "24", "26", "64":
		return []string{"AO", "AA", "AE"}
	case "36", "38":
		return []string{"AO", "AA"}
	case "66":
		return []string{"AO"}
	case "18":
		return []string{"AB", "AJ"}
	case "20":
		return []string{"AB"}
	default:
		return nil
	}
}
