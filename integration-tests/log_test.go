package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"checkoutlock/config"
	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas/okapi"
)

// captureLog runs f with a log of that level. It returns the lines of both services after
// f and all that it started have ended.
func captureLog(t *testing.T, level string, f func(t *testing.T, o stack.Options)) []string {
	t.Helper()
	var log bytes.Buffer // slog's handler writes one line at a time
	logger := config.Log{Level: level}.New(&log, "")
	t.Run("requests", func(t *testing.T) { f(t, stack.Options{CirculationEnv: shortWait, Log: logger}) })
	return strings.Split(strings.TrimSpace(log.String()), "\n")
}

// logLine has the attributes of a line that tests read.
type logLine struct {
	Msg, Level, Outcome, Patron, Item, Why string
	Service, Database, Err, Code           string
	Refused                                int
	RequestID                              string `json:"request_id"`
}

func parseLine(t *testing.T, text string) (l logLine) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		t.Fatalf("the line %.200q is no JSON object: %v", text, err)
	}
	return l
}

func TestLog_HasOneLineForEachCheckOut(t *testing.T) {
	t.Parallel()
	tests := []struct {
		request string // its id
		outcome string
		item    string // its barcode; "" for an available book
		lines   int    // at info, of both services
	}{
		{request: "lent", outcome: "lent", lines: 1},
		{request: "limit", outcome: "limit_reached", lines: 1},
		{request: "unknown-item", outcome: "refused", item: "no such book", lines: 1},
		{request: "held", outcome: "lock_not_acquired", lines: 1},
		{request: "huge", outcome: "refused", item: strings.Repeat("9", 800_000), lines: 1},
	}
	lines := captureLog(t, "info", func(t *testing.T, o stack.Options) {
		p := startPair(t, o, 1)
		p.storeLockEnabled(t)
		id, patron := p.addPatron(t)
		free, card := p.addPatron(t)
		for _, tt := range tests {
			p.machines[0].Header = http.Header{okapi.RequestIDHeader: {tt.request}}
			book, borrower := tt.item, patron
			if book == "" {
				book = p.addBooks(t, 1)[0]
			}
			if tt.request == "held" {
				p.acquireLock(t, free, outlastsTests)
				borrower = card
			}
			p.lendBook(t, 0, book, borrower)
		}
		if n := p.countOpenLoans(t, id); n != 1 {
			t.Errorf("%d open loans, want 1", n)
		}
		if err := p.StopCirculation(0); err != nil { // sends the history before the tenant is purged
			t.Error(err)
		}
	})
	for _, tt := range tests {
		var found []string
		for _, text := range lines {
			if parseLine(t, text).RequestID == tt.request {
				found = append(found, text)
			}
		}
		if len(found) != tt.lines {
			t.Errorf("%s: %d lines, want %d:\n%.2000s", tt.request, len(found), tt.lines, strings.Join(found, "\n"))
			continue
		}
		if l := parseLine(t, found[0]); l.Msg != "check-out" || l.Outcome != tt.outcome {
			t.Errorf("%s: got %s", tt.request, found[0])
		}
		if len(found[0]) > 4000 {
			t.Errorf("%s: the line has %d bytes", tt.request, len(found[0]))
		}
	}
}

func TestLog_NamesNoPatron(t *testing.T) {
	t.Parallel()
	barcode := fmt.Sprintf("2%013d", rand.Int64N(1e13))
	var userID string
	lines := captureLog(t, "debug", func(t *testing.T, o stack.Options) {
		p, links := startPairThatAcquires(t, o, 10)
		userID = p.exercisePatron(t, links[0], barcode)
	})
	seen := map[string]int{} // lines by message and level
	for _, text := range lines {
		l := parseLine(t, text)
		seen[l.Level+" "+l.Msg]++
		if lower := strings.ToLower(text); strings.Contains(lower, userID) || strings.Contains(text, barcode) {
			t.Errorf("the line names the patron %s %s: %s", userID, barcode, text)
		}
		if len(text) > 10_000 {
			t.Errorf("the line has %d bytes: %.300s", len(text), text)
		}
	}
	for _, want := range []string{
		"DEBUG request", "INFO request", "ERROR request", "INFO check-out", "INFO renewal", "INFO lock released by force",
		"WARN lock not released; it will be outdated", "WARN outcome of the commit unknown; sending it again",
		"INFO check-out answered like the first one with its key",
	} {
		if seen[want] == 0 {
			t.Errorf("no line %q was written, so this test does not cover it: %v", want, seen)
		}
	}
}

// exercisePatron sends all kinds of requests for a new patron with that barcode, and
// returns the patron's id.
func (p *pair) exercisePatron(t *testing.T, l *link, barcode string) (userID string) {
	t.Helper()
	userID, err := p.AddPatron(t.Context(), barcode)
	if err != nil {
		t.Fatal(err)
	}
	p.lendAndRenewFor(t, userID, barcode)
	p.failCallsFor(t, l, barcode)
	p.blockPatron(t, userID, barcode)
	p.searchPatron(t, userID, barcode)
	for _, name := range []string{userID, barcode} {
		p.sendNameEverywhere(t, name)
	}
	return userID
}

// lendAndRenewFor sends check-outs and renewals that succeed or are refused.
func (p *pair) lendAndRenewFor(t *testing.T, userID, barcode string) {
	t.Helper()
	books := p.addBooks(t, 3)
	p.lendBook(t, 0, books[0], barcode)
	p.lendBook(t, 0, books[0], barcode) // already lent
	p.lendBook(t, 0, "no such book", barcode)
	p.lendBook(t, 0, barcode, barcode) // the patron's barcode as the item's
	p.renewLoan(t, 0, books[0], barcode)
	p.renewLoan(t, 0, books[1], barcode)
	p.renewLoan(t, 0, barcode, barcode)
	for _, book := range []string{books[1], books[1], books[2]} { // lent, repeated, another body
		p.lendWithKey(t, 0, "key", p.newCheckOut(book, barcode))
	}
	p.checkInItem(t, books[1], p.ServicePointID)
	held := p.acquireLock(t, userID, outlastsTests)
	p.lendBook(t, 0, books[2], barcode)
	staffID, _ := p.addPatron(t)
	staff := p.machines[0]
	staff.Header = http.Header{okapi.UserIDHeader: {staffID}}
	readObject(t, callEndpoint(t, staff, http.MethodPost, "/circulation/check-out-locks/"+held+"/release",
		record{"reason": "the desk hangs"}), http.StatusOK)
}

// failCallsFor sends check-outs while storage fails. Some answers quote the request, as
// some gateways do.
func (p *pair) failCallsFor(t *testing.T, l *link, barcode string) {
	t.Helper()
	quote := func(status int) faultHandler {
		return func(w http.ResponseWriter, r *http.Request, _ func()) {
			readable, err := url.QueryUnescape(r.URL.String())
			if err != nil {
				t.Error(err)
			}
			w.WriteHeader(status)
			if _, err := fmt.Fprintf(w, "no backend for %s %s, which is %s", r.Method, r.URL, readable); err != nil {
				t.Error(err)
			}
		}
	}
	for i, tt := range []struct {
		keyed   bool
		refused bool // storage refuses the commit, so the lock has to be released
		fault   linkFault
	}{
		{fault: linkFault{path: factsPath, handle: quote(http.StatusBadGateway)}},
		{fault: linkFault{path: factsPath, handle: quote(http.StatusNotFound)}},
		{fault: linkFault{path: factsPath, handle: quote(http.StatusOK)}},
		{fault: linkFault{path: factsPath, handle: quote(http.StatusInternalServerError)}},
		{fault: linkFault{path: acquirePath, method: http.MethodPost, handle: quote(http.StatusServiceUnavailable)}},
		{fault: linkFault{path: commitPath, handle: quote(http.StatusBadGateway)}},
		{fault: linkFault{path: commitPath, handle: loseAnswer}},
		{fault: linkFault{path: keysPath, method: http.MethodPut, handle: quote(http.StatusBadGateway)}, keyed: true},
		{fault: linkFault{path: keysPath, handle: loseRequest}, keyed: true},
		{fault: linkFault{path: acquirePath, method: http.MethodDelete, handle: quote(http.StatusForbidden)}, refused: true},
		{fault: linkFault{handle: loseRequest}},
	} {
		tt.fault.times = always
		l.addFault(tt.fault)
		if tt.refused {
			l.addFault(linkFault{path: commitPath, times: always, handle: quote(http.StatusBadRequest)})
		}
		book := p.addBooks(t, 1)[0]
		if tt.keyed {
			p.lendWithKey(t, 0, fmt.Sprint("fault-", i), p.newCheckOut(book, barcode))
		} else {
			p.lendBook(t, 0, book, barcode)
		}
		l.removeFaults()
	}
}

// blockPatron blocks the patron with messages that contain the barcode. Another patron then
// names it as proxy.
func (p *pair) blockPatron(t *testing.T, userID, barcode string) {
	t.Helper()
	p.addRecord(t, "/manualblocks", record{
		"userId": userID, "desc": "card " + barcode, "borrowing": true, "renewals": true,
	})
	p.storeAutomatedBlocks(t, userID, record{
		"blockBorrowing": true, "message": "Card " + barcode + " of " + userID + " is blocked",
	})
	book := p.addBooks(t, 1)[0]
	_, other := p.addPatron(t)
	p.lendBook(t, 0, book, barcode)
	p.renewLoan(t, 0, book, barcode)
	p.sendCheckOut(t, book, other, record{"proxyUserBarcode": barcode})
	p.sendCheckOut(t, book, other, record{"proxyUserBarcode": other})
}

// searchPatron searches for the patron as staff and other modules do.
func (p *pair) searchPatron(t *testing.T, userID, barcode string) {
	t.Helper()
	for _, path := range []string{
		"/circulation/check-out-history?userBarcode=" + barcode, "/circulation/check-out-history?userBarcode=" + barcode +
			"&limit=x",
		"/circulation/check-out-locks?userBarcode=" + barcode, "/circulation/check-out-locks?userId=" + userID,
		"/circulation/loans?query=" + url.QueryEscape("userId=="+userID), "/circulation/loans?query=" +
			url.QueryEscape("unknown=="+barcode),
		"/staff/" + p.Storage.Tenant + "/locks?userBarcode=" + barcode, "/staff/" + p.Storage.Tenant +
			"/check-outs?userBarcode=" + barcode,
		"/circulation/" + barcode, "/" + userID,
	} {
		callEndpoint(t, p.machines[0], http.MethodGet, path, nil)
	}
	body := record{"itemBarcode": "no such book", "userBarcode": barcode}
	callEndpoint(t, p.machines[0], http.MethodPost, "/circulation/check-out-by-barcode-dry-run", body)
	callEndpoint(t, p.machines[0], http.MethodPost, "/circulation/check-out-explanation", body)
	callEndpoint(t, p.machines[0], http.MethodPost, checkOutPath, []byte(`{"userBarcode":`+barcode+`}`))
	callEndpoint(t, p.Storage, http.MethodPost, "/users", record{
		"barcode": barcode, "patronGroup": p.GroupID, "active": true,
	})
	callEndpoint(t, p.Storage, http.MethodDelete, "/users/"+userID, nil) // has loans
}

// sendNameEverywhere sends a patron's id or barcode in each part of each endpoint's input.
// These are the path, the parameters and the body's properties, also with other types.
func (p *pair) sendNameEverywhere(t *testing.T, name string) {
	t.Helper()
	for _, e := range p.endpoints(t) {
		if e.noTenant || e.method == http.MethodDelete {
			continue
		}
		send := func(path string, body any) { callEndpoint(t, e.client, e.method, path, body) }
		if strings.Contains(e.path, ":id") {
			send(e.fillPath(name), e.body)
		}
		if len(e.query) > 0 {
			all := url.Values{}
			for _, q := range e.query {
				all.Set(q, name)
				send(e.path+"?"+url.Values{q: {name}}.Encode(), nil)
			}
			send(e.path+"?"+all.Encode(), nil)
		}
		if slices.Contains(e.query, "query") {
			for _, cql := range []string{
				"id==" + name, name + "==1", `id=="` + name, "metadata.createdDate==" + name, "cql.allRecords=1 sortby " + name,
			} {
				send(e.path+"?query="+url.QueryEscape(cql), nil)
			}
		}
		if e.body != nil {
			send(e.fillPath(name), fillBody(e.body, name))
			send(e.fillPath(name), fillBody(e.body, []string{name}))
			if number, err := strconv.Atoi(name); err == nil {
				send(e.fillPath(name), fillBody(e.body, number))
			}
		}
	}
}

// fillBody returns a body of the same properties, each with that value.
func fillBody(body record, value any) record {
	r := record{}
	for property := range body {
		r[property] = value
	}
	return r
}
