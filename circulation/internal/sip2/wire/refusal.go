package wire

import (
	"strings"
	"time"
)

// Refusal returns the answer that refuses r, with texts for the screen. institution is that of
// the terminal, "" for the one of the request. at is the time of the answer, in the terminal's zone.
func Refusal(r Request, institution string, at time.Time, texts ...string) Answer {
	a, ids := refusalOf(r, FormatDate(at))
	for _, id := range ids {
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

// refusalOf returns the refusal of a request, and the ids of its fields before the texts.
func refusalOf(r Request, date string) (Answer, []string) {
	denied := "YYYY" + strings.Repeat(" ", 10)
	lending, card := []string{"AO", "AA", "AB", "AJ", "AH"}, []string{"AO", "AA", "AE"}
	switch r.Code {
	case CheckOut:
		return NewAnswer("12", "0NUN", date), lending
	case CheckIn:
		return NewAnswer("10", "0NUY", date), []string{"AO", "AB", "AQ", "CV"}
	case Renew:
		return NewAnswer("30", "0NUN", date), lending
	case RenewAll:
		return NewAnswer("66", "000000000", date), []string{"AO"}
	case PatronStatus, BlockPatron:
		return NewAnswer("24", denied, r.Language(), date), card
	case EnablePatron:
		return NewAnswer("26", denied, r.Language(), date), card
	case PatronInformation:
		return NewAnswer("64", denied, r.Language(), date, noCounts), card
	case EndSession:
		return NewAnswer("36", "N", date), []string{"AO", "AA"}
	case ItemInformation:
		return NewAnswer("18", "010101", date), []string{"AB", "AJ"}
	case ItemStatusUpdate:
		return NewAnswer("20", "0", date), []string{"AB"}
	case Hold:
		return NewAnswer("16", "0N", date), []string{"AO", "AA", "AB"}
	case FeePaid:
		return NewAnswer("38", "N", date), []string{"AO", "AA"}
	case Login:
		return NewAnswer("94", "0"), nil
	default:
		return NewAnswer(ResendRequest), nil
	}
}
