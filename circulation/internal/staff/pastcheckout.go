package staff

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/redact"
	"checkoutlock/web/texts"
)

// Entries of the history: their patrons, names and links, and the file of them.

// patronSearch is what became of the patron that was searched for.
type patronSearch struct {
	Text    string // as it was typed; empty for no search
	Barcode string // to search the history by
	Name    string // of the patron, if there is one and the visitor may see it
	Unknown bool   // no patron is meant by the text
	Near    []nearPatron
}

// nearPatron is a patron that may have been meant.
type nearPatron struct{ Name, Barcode, Path string }

// searchPatron finds the patron that a search means. Without the permission for patrons, the text is a barcode.
func (p *pages) searchPatron(v *visit, text string) (patronSearch, error) {
	s := patronSearch{Text: text, Barcode: text}
	if text == "" {
		return s, nil
	}
	if !v.may(admin.MaySeePatrons) {
		_, exists, err := fault.Found(p.admin.PatronID(v.ctx(), text))
		s.Unknown = !exists
		return s, err
	}
	found, err := p.admin.FindPatron(v.ctx(), text)
	switch {
	case err != nil:
		return s, err
	case found.Patron != nil:
		s.Barcode, s.Name = cmp.Or(found.Patron.Barcode, text), v.nameUser(*found.Patron)
		return s, nil
	}
	s.Unknown = true
	for _, u := range found.Near {
		if u.Barcode != "" {
			s.Near = append(s.Near, nearPatron{v.nameUser(u), u.Barcode, v.pathOf("/check-outs", func(q url.Values) {
				q.Del("offset")
				q.Set("patron", u.Barcode)
			})})
		}
	}
	return s, nil
}

// nameUser is a user's name, or else the username.
func (v *visit) nameUser(u library.User) string {
	return cmp.Or(u.Personal.FullName(), u.Username, v.say("patrons.nameless", nil))
}

// pastCheckOut is an entry of the history as the page shows it.
type pastCheckOut struct {
	Entry        schemas.PastCheckOut
	Patron       string
	Name         string // of the patron; empty if the visitor does not see it
	Title        string // of the item
	ServicePoint string // its name, or its id if it has none
	Outcome      outcome
	Why          texts.Code // shown before the entry's reason
	Lent         bool
	All          string // paths: of all entries of the patron
	Try          string // of a trial of the item, with the patron if the visitor sees the barcode
}

// describeCheckOuts describes entries. searched is the barcode that the visitor knows already.
func (v *visit) describeCheckOuts(list []schemas.PastCheckOut, searched string) []pastCheckOut {
	shown := v.showsPatrons()
	names := v.pages.admin.NamePast(v.ctx(), list, shown && v.may(admin.MaySeePatrons))
	entries := make([]pastCheckOut, len(list))
	for i, e := range list {
		o := findOutcome(e.Outcome)
		entry := pastCheckOut{
			Entry: e, Patron: e.UserBarcode, Outcome: o, Why: cmp.Or(o.explain(e.Reason), v.translateCause(e.Code)), Lent: e.Outcome == schemas.OutcomeLent,
			Name: names.Patrons[e.UserID], Title: names.Titles[strings.ToLower(e.ItemBarcode)],
			ServicePoint: cmp.Or(names.ServicePoints[e.ServicePointID], e.ServicePointID),
		}
		known := e.UserBarcode != "" && (shown || strings.EqualFold(e.UserBarcode, searched))
		if known {
			entry.All = v.path("/check-outs") + "?" + v.keepQuery(url.Values{"patron": {e.UserBarcode}})
		}
		if e.ItemBarcode != "" && v.may(admin.MayExplain) {
			q := url.Values{"itemBarcode": {e.ItemBarcode}}
			if known {
				q.Set("userBarcode", e.UserBarcode)
			}
			entry.Try = v.path("/try") + "?" + q.Encode()
		}
		if !shown {
			entry.hidePatron()
		}
		entries[i] = entry
	}
	return entries
}

// hidePatron masks the patron's barcode, also where the reason names the patron, and where a card was
// scanned as the item.
func (p *pastCheckOut) hidePatron() {
	if p.Patron != "" {
		p.Patron = redact.Mask(p.Patron)
	}
	if masked := redact.MaskIn(p.Entry.ItemBarcode, p.Entry.UserBarcode); masked != p.Entry.ItemBarcode {
		p.Entry.ItemBarcode, p.Try = masked, ""
	}
	p.Entry.Reason = redact.MaskIn(p.Entry.Reason, p.Entry.UserBarcode, p.Entry.UserID)
}

// saveCheckOuts handles GET /staff/{tenant}/check-outs.csv: what the page shows, as a file (RFC 4180).
func (p *pages) saveCheckOuts(v *visit) error {
	page, err := p.listCheckOuts(v)
	if err != nil {
		return err
	}
	if len(page.Problems) > 0 {
		return fault.New(fault.Invalid, "%s: %s", page.Problems[0].Label, page.Problems[0].Wrong)
	}
	rows := [][]string{v.listHeads(
		"csv.ended", "csv.patron", "csv.name", "csv.item", "csv.title", "csv.servicePoint", "csv.machine",
		"csv.outcome", "csv.code", "csv.reason", "csv.waitedMs", "csv.tookMs", "csv.request", "csv.instance",
	)}
	for _, e := range page.Entries {
		waited := ""
		if e.Entry.WaitMs != nil {
			waited = strconv.Itoa(*e.Entry.WaitMs)
		}
		rows = append(rows, []string{
			v.formatDate(e.Entry.Date), e.Patron, e.Name, e.Entry.ItemBarcode, e.Title, e.ServicePoint, e.Entry.Machine, v.say(e.Outcome.Word, nil), e.Entry.Code,
			cmp.Or(e.Entry.Reason, v.say(e.Why, nil)), waited, strconv.Itoa(e.Entry.TookMs), e.Entry.RequestID, e.Entry.Instance,
		})
	}
	return v.sendCSV("check-outs", rows)
}

// listHeads are the heads of a table's columns as a file has them.
func (v *visit) listHeads(codes ...texts.Code) []string {
	return convert.All(codes, func(code texts.Code) string { return v.say(code, nil) })
}

// formula is the beginning of a formula of a spreadsheet, which may take more than a comma as the end of
// a cell.
var formula = regexp.MustCompile(`(^|[;\t\n])([=+@-])`)

// sendCSV answers with a table as a file. No cell is a formula of a spreadsheet.
func (v *visit) sendCSV(name string, rows [][]string) error {
	h := v.c.Response().Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name+"-"+v.tenant.String()+".csv"))
	w := csv.NewWriter(v.c.Response())
	w.UseCRLF = true
	for _, row := range rows {
		for i, cell := range row {
			row[i] = formula.ReplaceAllString(strings.ReplaceAll(cell, "\r", ""), "$1'$2")
			if strings.HasPrefix(row[i], "\t") {
				row[i] = "'" + row[i]
			}
		}
		if err := w.Write(row); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}
