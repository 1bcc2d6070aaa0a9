package postgres_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

const (
	annID   = "11111111-1111-4111-8111-111111111111"
	benID   = "22222222-2222-4222-8222-222222222222"
	cleoID  = "33333333-3333-4333-8333-333333333333"
	staffID = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
)

// patrons are ann, ben and cleo, by username.
func patrons(tb testing.TB) library {
	tb.Helper()
	l := newLibrary(tb)
	l.create(tb, records.Usergroup, object{"id": staffID, "group": "staff", "expirationOffsetInDays": 365})
	l.create(tb, records.Usergroup, object{"group": "guest", "expirationOffsetInDays": 9})
	l.create(tb, records.User, object{
		"id": annID, "username": "ann", "barcode": "Ab-100%", "active": true, "patronGroup": staffID,
		"expirationDate": "2026-06-01T00:00:00.000+00:00", "enrollmentDate": "2020-01-01",
		"personal": object{"lastName": "O'Brien-Smith", "firstName": "Ann Marie", "email": "ann@example.org"},
	})
	l.create(tb, records.User, object{
		"id": benID, "username": "ben", "barcode": "AB-1000", "active": false, "externalSystemId": "",
		"expirationDate": "2026-06-01T01:30:00.000+0200",
		"personal":       object{"lastName": "Müller", "firstName": "Marie*Ben"},
	})
	l.create(tb, records.User, object{
		"id": cleoID, "username": "cleo", "barcode": `a\b"c`, "active": true,
		"personal": object{
			"lastName": "Smithson", "firstName": "Cleo", "middleName": "Lee",
		}, "customFields": object{"nearBy": []string{"Lakeside", "hill"}, "card-no_2": "C-77"},
	})
	return l
}

func TestCQL_FindsWhatFOLIOFinds(t *testing.T) {
	t.Parallel()
	l := patrons(t)
	tests := []struct{ query, want string }{
		{``, "ann ben cleo"},
		{`   `, "ann ben cleo"},
		{`cql.allRecords=1`, "ann ben cleo"},

		// == is the whole value, without regard to case.
		{`username==ANN`, "ann"},
		{`username=="an"`, ""},
		{`barcode=="ab-100%"`, "ann"},
		{`barcode=="ab_1000"`, ""},
		{`barcode=="ab-1*"`, "ann ben"},
		{`barcode=="ab_1*"`, ""},
		{`barcode=="*0%"`, "ann"},
		{`barcode=="AB-100?"`, "ann ben"},
		{`barcode=="AB-100\?"`, ""},
		{`personal.firstName=="marie\*ben"`, "ben"},
		{`personal.firstName=="marie*ben"`, "ben"},
		{`barcode=="a\\b\"c"`, "cleo"},
		{`barcode==*`, "ann ben cleo"},
		{`username==/respectCase ANN`, ""},
		{`username==/respectCase ann`, "ann"},
		{`username exact ann`, "ann"},
		{`externalSystemId==""`, "ben"},
		{`externalSystemId=="*"`, "ben"},
		{`personal.lastName=="müller"`, "ben"},

		// Lists and booleans, as mod-circulation sends them.
		{`username==("ann" or "cleo" or "none")`, "ann cleo"},
		{`id==("` + annID + `" or "` + benID + `")`, "ann ben"},
		{`id="` + annID + `*" or patronGroup="none*"`, "ann"}, // as FOLIO's list of requests asks
		{`username==ann and active==true`, "ann"},
		{`username==ann and active==false`, ""},
		{`username==ann or username==ben and active==true`, "ann"}, // no precedence: left to right
		{`username==ann or (username==ben and active==false)`, "ann ben"},
		{`cql.allRecords=1 NOT username==ann`, "ben cleo"},
		{`cql.allRecords=1 not externalSystemId=""`, "ann cleo"},
		{`cql.allRecords=1 not externalSystemId==x`, "ann ben cleo"}, // a missing field is not x
		{`active==TRUE`, "ann cleo"},
		{`active<>true`, "ben"},

		// = is words, one after another.
		{`personal.lastName=smith`, "ann"},
		{`personal.lastName="o'brien smith"`, "ann"},
		{`personal.lastName="brien, smith"`, "ann"},
		{`personal.lastName="smith o'brien"`, ""},
		{`personal.lastName="o'brien *"`, "ann"},
		{`personal.lastName="brien sm*"`, "ann"},
		{`personal.lastName="smith*"`, "ann cleo"},
		{`personal.lastName="*son"`, "cleo"},
		{`personal.lastName="smith?on"`, "cleo"},
		{`personal.lastName=smiths`, ""},
		{`personal.lastName=müller`, "ben"},
		{`personal.lastName=mäller`, ""},
		{`personal.email="example.org"`, "ann"},
		{`personal.email="org.example"`, ""},
		{`personal.email=""`, "ann"},
		{`personal.lastName="-"`, "ann ben cleo"},
		{`personal.firstName all "marie ann"`, "ann"},
		{`personal.firstName any "ben ann"`, "ann ben"},
		{`personal.firstName adj "ann marie"`, "ann"},
		{`personal.firstName adj "marie ann"`, ""},

		// Words without quotation marks are one value.
		{`personal.firstName==Ann Marie`, "ann"},
		{`personal.firstName==Ann Marie and active==true`, "ann"},
		{`personal.firstName==(Ann Marie or Cleo)`, "ann cleo"},
		{`personal.lastName=o'brien smith sortBy username`, "ann"},

		// keywords joins names, email, barcode, ids and the values of custom fields.
		{`keywords="smith*"`, "ann cleo"},
		{`keywords="marie obrien"`, ""},
		{`keywords="marie o'brien"`, "ann"},
		{`keywords="cleo smithson lee"`, "cleo"}, // the middle name comes last
		{`keywords=cle*`, "cleo"},
		{`keywords="ab-1000"`, "ben"},
		{`keywords="` + benID + `"`, "ben"},
		{`keywords="example.org"`, "ann"},
		{`keywords="lake*"`, "cleo"},
		{`keywords="nearBy"`, ""}, // the name of a custom field
		{`(keywords="smith*" and active=="true") sortby personal.lastName personal.firstName`, "ann cleo"},
		{`keywords="*"`, "ann ben cleo"},
		{`keywords==x`, ""},

		// FOLIO's desk looks patrons up by the custom fields that its settings choose.
		{`(barcode=="c-77" OR customFields.card-no_2=="c-77")`, "cleo"},
		{`customFields.nearBy="lakeside" sortBy customFields.nearBy`, "cleo"},
		{`customFields.shoeSize==43`, ""},

		// Order.
		{`username<>ann`, "ben cleo"},
		{`username<>"a*"`, "ben cleo"},
		{`externalSystemId<>x`, "ben"}, // only records that have the field
		{`username>"ann" and username<="ben"`, "ben"},
		{`username<"BEN"`, "ann"},

		// Ids: anything else matches nothing.
		{`id=="` + strings.ToUpper(annID) + `"`, "ann"},
		{`id==ann`, ""},
		{`id='` + annID + `'`, "ann"},
		{`patronGroup='` + strings.ToUpper(staffID) + `'`, "ann"},
		{`id=='` + annID + `'`, ""},
		{`id<>ann`, "ann ben cleo"},
		{`id<>"` + annID + `"`, "ben cleo"},
		{`id>"` + annID + `" sortBy id`, "ben cleo"},
		{`patronGroup=="` + staffID + `"`, "ann"},
		{`patronGroup=*`, "ann"},
		{`patronGroup=""`, "ann"},
		{`patronGroup.group==STAFF`, "ann"},
		{`cql.allRecords=1 not patronGroup.group=guest`, "ann ben cleo"},
		{`patronGroup=="' or true --"`, ""},

		// Dates are instants in any zone. Without one they are UTC.
		{`expirationDate<"2026-06-01T00:00:00Z"`, "ben"},
		{`expirationDate=="2026-05-31T23:30:00.000+00:00"`, "ben"},
		{`expirationDate>="2026-06-01"`, "ann"},
		{`enrollmentDate=="2020-01-01T01:00:00+01:00"`, "ann"},
		{`expirationDate=""`, "ann ben"},
		{`expirationDate>""`, "ann ben"},
		{`expirationDate<>""`, "ann ben"},
		{`active>""`, "ann ben cleo"},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			t.Parallel()
			if got := usernames(t, l, tt.query, true); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Many programs write U+FFFD for bytes that they cannot read, so barcodes contain it.
func TestCQL_FindsTheReplacementCharacter(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.create(t, records.User, object{"username": "one", "barcode": "A\ufffd1"})
	l.create(t, records.User, object{
		"username": "two", "barcode": "\ufffd\ufffd", "personal": object{"lastName": "M\ufffdller Smith"},
	})
	l.create(t, records.User, object{"username": "private", "barcode": "A\ue0001"})
	for query, want := range map[string]string{
		"barcode==\"A\ufffd1\"":                                  "one",
		"barcode==a\ufffd1":                                      "one",
		"barcode==\"\ufffd*\"":                                   "two",
		"barcode==\"\\\ufffd\ufffd\"":                            "two",
		"barcode==(\"A\ufffd1\" or \"\ufffd\ufffd\")":            "one two",
		"personal.lastName all \"smith m\ufffdller\"":            "two",
		"barcode==\"\ufffd\"":                                    "",
		"barcode==\"A\ufffd1\" or barcode==\"A\ue0001\"":         "one private",
		"barcode==\"A\ufffd1\" sortby username":                  "one",
		"username==one and (barcode==x or barcode=\"a\ufffd1\")": "one",
	} {
		if got := usernames(t, l, query, true); got != want {
			t.Errorf("%q found %q, want %q", query, got, want)
		}
	}
}

// Hyphens between the digits of an ISBN do not count, and other identifiers are none.
func TestCQL_FindsRequestsByISBN(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	const isbn = "8261054f-be78-422d-bd51-4ed9f33c3422"
	l.create(t, records.Request, object{
		"instanceId": benID, "requesterId": annID, "requestType": "Hold", "requestLevel": "Title",
		"requestDate": "2026-01-01", "fulfillmentPreference": "Hold Shelf", "status": "Open - Not yet filled",
		"instance": object{"title": "Interesting Times", "identifiers": []object{
			{"identifierTypeId": isbn, "value": "978-0-552-16754-3 paperback"},
			{"identifierTypeId": isbn, "value": "0552167541"},
			{"identifierTypeId": isbn, "value": "0-8044-2957-X"},
			{"identifierTypeId": staffID, "value": "1234"},
		}},
	})
	for query, want := range map[string]int{
		`itemIsbn = 0-552-16754-1`: 1, `itemIsbn = 05-5*`: 1, `itemIsbn = 9780552167543`: 1, `itemIsbn = 9780*`: 1,
		`itemIsbn = 9-7-8-055-2167-543`: 1, `itemIsbn = "978-0552-167543 Paper*"`: 1, `itemIsbn = 080442957x`: 1,
		`itemIsbn = 552-16754-3`: 0, `itemIsbn = 552*`: 0, `itemIsbn = 1234`: 0, `itemIsbn = 8261054f`: 0,
		`itemIsbn = value`: 0, `itemIsbn = 97805521675430552167541`: 0,
	} {
		list, err := pgtest.List(l.in(t), l.store, records.Request, records.Page{Query: query, Limit: 10})
		if err != nil || len(list.Records) != want {
			t.Errorf("%s: got %d requests, %v, want %d", query, len(list.Records), err, want)
		}
	}
}

// FOLIO's mod-template-engine asks in this way whether a template may be deleted.
func TestCQL_FindsNoticePoliciesByTemplate(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	for _, notices := range []string{"loanNotices", "requestNotices", "feeFineNotices"} {
		l.create(t, records.PatronNoticePolicy, object{"name": notices, "active": true, notices: []object{{
			"name": "first", "templateId": annID, "format": "Email", "realTime": true,
			"sendOptions": object{"sendWhen": "Available"},
		}}})
	}
	for template, want := range map[string]int{annID: 3, benID: 0} {
		asked := []string{}
		for _, notices := range []string{"loanNotices", "requestNotices", "feeFineNotices"} {
			asked = append(asked, notices+` == "*\"templateId\": \"`+template+`\"*"`)
		}
		page := records.Page{Query: strings.Join(asked, " OR ")}
		list, err := pgtest.List(l.in(t), l.store, records.PatronNoticePolicy, page)
		if err != nil || list.Total != want {
			t.Errorf("%s: got %d policies, %v, want %d", page.Query, list.Total, err, want)
		}
	}
}

// usernames lists the patrons that match.
func usernames(t *testing.T, l library, query string, sorted bool) string {
	list, err := pgtest.List(l.in(t), l.store, records.User, records.Page{Query: query, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	if list.Total != len(list.Records) {
		t.Errorf("total is %d with %d records", list.Total, len(list.Records))
	}
	names := []string{}
	for _, doc := range list.Records {
		r, err := records.Decode(doc)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, r.Text("username"))
	}
	if sorted {
		slices.Sort(names)
	}
	return strings.Join(names, " ")
}

func TestCQL_Sorts(t *testing.T) {
	t.Parallel()
	l := patrons(t)
	tests := []struct{ query, want string }{
		{`cql.allRecords=1 sortBy username`, "ann ben cleo"},
		{`cql.allRecords=1 sortby username/sort.descending`, "cleo ben ann"},
		{`cql.allRecords=1 sortby username/sort.descending/sort.descending`, "cleo ben ann"},
		{`cql.allRecords=1 sortby username/sort.descending/sort.ascending`, "ann ben cleo"}, // the last one counts
		{`cql.allRecords=1 sortBy active/sort.ascending username/sort.descending`, "ben cleo ann"},
		{`cql.allRecords=1 sortBy expirationDate`, "ben ann cleo"}, // without the field last
		{`cql.allRecords=1 sortBy patronGroup.group username/sort.descending`, "ann cleo ben"},
		{`username==("ann" or "cleo") sortBy personal.lastName/sort.descending`, "cleo ann"},
		{`cql.allRecords=1 sortBy username desc`, "ann ben cleo"}, // desc is no index
		{`cql.allRecords=1 sortBy desc username/sort.descending shoeSize`, "cleo ben ann"},
		{`cql.allRecords=1 sortBy "id; drop table users" username`, "ann ben cleo"},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			t.Parallel()
			if got := usernames(t, l, tt.query, false); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCQL_LogsIgnoredSortKeysAtDebug(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	l := newLibrary(t)
	l.store = postgres.NewRecordStore(openAt(t, pgtest.URL(t), logger), func() {})
	usernames(t, l, "cql.allRecords=1 sortBy username desc", false)
	if want := `level=DEBUG msg="sort keys ignored" collection=users count=1`; !strings.Contains(log.String(), want) {
		t.Errorf("logged %s, want %s", log.String(), want)
	}
}

func TestCQL_ComparesNumbersAsNumbers(t *testing.T) {
	t.Parallel()
	l := patrons(t)
	for query, want := range map[string]int{
		`expirationOffsetInDays>9`: 1, `expirationOffsetInDays==9.0`: 1, `expirationOffsetInDays<400`: 2,
		`expirationOffsetInDays<>365`: 1,
	} {
		list, err := pgtest.List(l.in(t), l.store, records.Usergroup, records.Page{Query: query})
		if err != nil || list.Total != want {
			t.Errorf("%s: got %d, %v, want %d", query, list.Total, err, want)
		}
	}
}

func TestCQL_ComparesIDsWithoutRegardToCase(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	loan := newLoan(annID, benID)
	loan["proxyUserId"] = strings.ToUpper(staffID)
	l.create(t, records.Loan, loan)
	list, err := pgtest.List(l.in(t), l.store, records.Loan, records.Page{Query: "proxyUserId==" + staffID})
	if err != nil || list.Total != 1 {
		t.Errorf("got %d, %v, want 1", list.Total, err)
	}
}

// A list passes on the faults of package cql, whose tests have the others.
func TestCQL_RefusesABadQuery(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	for _, query := range []string{`shoeSize==43`, `customFields==43`, `"customFields.a'b"==43`, `customFields.a.b==43`} {
		_, err := pgtest.List(l.in(t), l.store, records.User, records.Page{Query: query, Limit: 1})
		wantCode(t, err, fault.Malformed)
	}
}

// FuzzCQL runs queries on a real database. The answer to any query is records or a fault
// of the caller.
func FuzzCQL(f *testing.F) {
	for _, query := range []string{
		`username==ann`, `personal.lastName="o'brien*" sortBy username/sort.descending`, `id<>x not active==true`,
		`username="\\%_'*?^" or barcode==("a" or "\"")`, `expirationDate<2026-01-31T00:00:00+15:59`, `username any "a b"`,
		`expirationDate>"9999-12-31T23:59:59-15:00"`, `username="` + strings.Repeat("*a", 90) + `"`,
		`username=="` + strings.Repeat("%_", 900) +
			`*"`, `barcode<"\\" and barcode adj "[[:alnum:]]"`, "username==\ufffd", "((((((id==*))))))",
	} {
		f.Add(query)
	}
	l := patrons(f)
	f.Fuzz(func(t *testing.T, query string) {
		for _, typ := range []records.Type{records.User, records.Loan, records.Usergroup} {
			_, err := pgtest.List(l.in(t), l.store, typ, records.Page{Query: query, Limit: 2})
			if code := fault.CodeOf(err); code != "" && code != fault.Malformed {
				t.Errorf("%s %q: %v", typ.Collection, query, err)
			}
		}
	})
}
