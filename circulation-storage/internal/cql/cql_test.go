package cql_test

import (
	"fmt"
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/cql"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

// The tests of package postgres run queries.
func TestParse_WritesSQL(t *testing.T) {
	t.Parallel()
	const (
		id     = "11111111-1111-4111-8111-111111111111"
		number = `(CASE WHEN jsonb_typeof(jsonb->'days') = 'number' THEN (jsonb->>'days')::numeric END)`
		words  = `(' ' || regexp_replace(lower(jsonb->>'name'), '[\u0001-\u002F\u003A-\u0040\u005B-\u0060\u007B-\u00BF` +
			`\u2000-\u206F\u3000-\u303F]+', ' ', 'g') || ' ')`
	)
	indexes := map[string]records.Index{
		"id":        {Kind: records.UUID, Column: "id"},
		"name":      {Kind: records.Text},
		"home.city": {Kind: records.Text},
		"all":       {Kind: records.Text, Parts: []string{"$.home.*", "name"}},
		"active":    {Kind: records.Boolean},
		"days":      {Kind: records.Number},
		"due":       {Kind: records.Time, Column: "due"},
		"home.back": {Kind: records.Time},
	}
	for _, tt := range []struct {
		query, where, order, args, ignored string
	}{
		{query: " ", where: `true`},
		{query: `name==ANN`, where: `lower(jsonb->>'name') = lower($1::text)`, args: "ANN"},
		{query: `(name==ANN)")`, where: `lower(jsonb->>'name') = lower($1::text)`, args: "ANN"}, // ui-requests' ItemsDialog
		{query: `name==/respectCase "a_b\*"`, where: `jsonb->>'name' = $1::text`, args: "a_b*"},
		{query: `name=="a\\b*"`, where: `lower(jsonb->>'name') LIKE lower($1::text)`, args: `a\\b%`},
		{
			query: `name all/ignoreCase/respectAccents/masked "x/y:z d\*e"`, args: "% x y z %,% d e %",
			where: `(` + words + ` LIKE lower($1::text) AND ` + words + ` LIKE lower($2::text))`,
		},
		{query: `name scr/string "x/y:z d\*e *"`, args: "% x y z d e %", where: `(` + words + ` LIKE lower($1::text))`},
		{query: `days <=/number 9`, where: number + ` <= $1::numeric`, args: "9"},
		{query: `name adj "-"`, where: `jsonb->>'name' IS NOT NULL`},
		{query: `name<>"a_*"`, where: `lower(jsonb->>'name') NOT LIKE lower($1::text)`, args: `a\_%`},
		{query: `home.city>=b`, where: `lower(jsonb->'home'->>'city') >= lower($1::text)`, args: "b"},
		{
			query: `all==*`,
			where: `concat_ws(' ', jsonb_path_query_array(jsonb, '$.home.*')::text, jsonb->>'name') IS NOT NULL`,
		},
		{query: `id==("` + id + `" or ann)`, where: `(id = $1::uuid OR false)`, args: id},
		{query: `id=="" or id<"" or id<*`, where: `((false OR false) OR false)`},
		{query: `id==zzzzzzzz-zzzz-zzzz-zzzz-zzzzzzzzzzzz`, where: `false`},
		{
			query: `due exact 2026-01-31 sortBy due/descending id/ascending`, where: `due = $1::timestamptz`,
			order: `due DESC, id, `, args: "2026-01-31 00:00:00 +0000 UTC",
		},
		{
			query: `active==TRUE not name==""`,
			where: `(jsonb->>'active' = $1::text AND (lower(jsonb->>'name') = lower($2::text)) IS NOT TRUE)`, args: "true,",
		},
		{
			query: `days>9.5`, args: "9.5",
			where: number + ` > $1::numeric`,
		},
		{
			query: `home.back>2026-01-31`, args: "2026-01-31 00:00:00 +0000 UTC",
			where: `{schema}.record_time(jsonb->'home'->>'back') > $1::timestamptz`,
		},
		{query: `due<2026-01-31T01:00:00+01:00`, where: `due < $1::timestamptz`, args: "2026-01-31 00:00:00 +0000 UTC"},
		{
			query: `cql.allRecords=1 sortBy due/sort.descending desc name`,
			where: `true`, order: `due DESC, lower(jsonb->>'name'), `, ignored: "desc",
		},
		{query: `cql.allRecords=1 sortBy days/number/ignoreCase/sort.descending`, where: `true`, order: number + ` DESC, `},
	} {
		t.Run(tt.query, func(t *testing.T) {
			t.Parallel()
			sel, err := cql.Parse(indexes, tt.query)
			if err != nil {
				t.Fatal(err)
			}
			args := make([]string, len(sel.Args))
			for i, arg := range sel.Args {
				args[i] = fmt.Sprint(arg)
			}
			if sel.Where != tt.where || sel.Order != tt.order {
				t.Errorf("got %q ordered by %q, want %q by %q", sel.Where, sel.Order, tt.where, tt.order)
			}
			if strings.Join(args, ",") != tt.args || strings.Join(sel.Ignored, ",") != tt.ignored {
				t.Errorf("got the parameters %q, ignored %q", sel.Args, sel.Ignored)
			}
		})
	}
}

// These are what ui-requests sends for its list of requests.
func TestParse_KnowsWhatTheListOfRequestsAsksFor(t *testing.T) {
	t.Parallel()
	const query = `(cql.allRecords=1 NOT printDetails.printed="" or printDetails.printed==true) sortby position/number ` +
		`printDetails.printCount/number/sort.descending item.retrievalServicePointName proxy`
	sel, err := cql.Parse(records.Request.Indexes, query)
	if err != nil || len(sel.Ignored) > 0 {
		t.Errorf("got the fault %v, ignored %q", err, sel.Ignored)
	}
}

func TestParse_BindsWhatWasSent(t *testing.T) {
	t.Parallel()
	for _, relation := range []string{"==", "=", "<>", "<", "<=", ">", ">=", "all", "any", "adj"} {
		for _, term := range []string{"sent' $9", "*sent' $9"} {
			query := `username ` + relation + ` "` + term + `" sortBy sent`
			sel, err := cql.Parse(records.User.Indexes, query)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(sel.Where+sel.Order, "sent") {
				t.Errorf("%s: got %s ordered by %s", query, sel.Where, sel.Order)
			}
			if got := strings.Count(sel.Where, "::text)"); got != len(sel.Args) {
				t.Errorf("%s: %s has %d parameters, want %d", query, sel.Where, got, len(sel.Args))
			}
		}
	}
}

func TestParse_Refusals(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ query, want string }{
		"nothing to look for":     {`username==`, "search term expected at position 10"},
		"a missing parenthesis":   {`(username==a`, "missing ) at position 12"},
		"a parenthesis too many":  {`username==a)`, "EOF expected at position 12"},
		"a missing quote":         {`username=="a and active==true`, "within a quoted value"},
		"a quote before words":    {`(username==a) "and active==true)`, "EOF expected at position 32"},
		"a quote in a value":      {`username=="a and (active==true")`, "within a quoted value"},
		"a backslash at the end":  {`username==a\`, "after a backslash"},
		"words without relation":  {`username a b`, `name the index to look for "username a b" in`},
		"a second relation":       {`username==a id==b`, "EOF expected at position 17"},
		"no index":                {`"smith"`, `name the index to look for "smith" in; allowed are active, barcode, `},
		"an unknown index":        {`shoeSize==43`, `unknown index "shoeSize"; allowed are active, barcode, `},
		"an unknown first index":  {`shoeSize==43 and username==a`, "unknown index"},
		"SQL as an index":         {`"jsonb') or true --"==1`, "unknown index"},
		"an unknown relation":     {`username within "a b"`, `relation "within" is not supported`},
		"a list of words for ids": {`id any "a b"`, `index "id" cannot be compared by "any"`},
		"prox":                    {`username==a prox username==b`, `operator "prox" is not supported`},
		"a modifier":              {`username==/fuzzy a`, `modifier "fuzzy" is not supported`},
		"a modifier of and":       {`username==a and/x username==b`, "takes no modifiers"},
		"a sort modifier":         {`username==a sortBy username/upwards`, `sort modifier "upwards"`},
		"a prefix":                {`>dc="x" username==a`, "prefix assignments"},
		"no boolean":              {`active==maybe`, "allowed are true and false"},
		"no date":                 {`expirationDate<yesterday`, "must be a date"},
		"a date in year 0":        {`expirationDate<"0000-01-01"`, "must be a date"},
		"a date in apostrophes":   {`expirationDate='2026-01-01'`, "must be a date"},
		"a 13th month":            {`expirationDate<"2026-13-01"`, "must be a date"},
		"NUL":                     {"username==a\x00b", "NUL"},
		"no UTF-8":                {"username==\xff", "UTF-8"},
		"too long":                {`username=="` + strings.Repeat("a", 17000) + `"`, "at most 16384"},
		"too many comparisons":    {"username==(" + strings.Repeat("a or ", 200) + "a)", "more than 200"},
		"too many words":          {`username all "` + strings.Repeat("a ", 201) + `"`, "more than 200"},
		"too many sort keys":      {"username==a sortBy" + strings.Repeat(" username", 201), "more than 200"},

		// Many programs write U+FFFD for bytes that they cannot read.
		"U+FFFD as an index":          {"\ufffd==1", "unknown index \"\ufffd\""},
		"U+FFFD alone":                {"\ufffd", "look for \"\ufffd\" in"},
		"U+FFFD after a quote":        {"barcode==\"\ufffd", "ends within a quoted value"},
		"U+FFFD before a backslash":   {"barcode==\ufffd\\", "after a backslash"},
		"U+FFFD and a missing clause": {"barcode==\ufffd and", "position"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := cql.Parse(records.User.Indexes, tt.query)
			if !fault.Is(err, fault.Malformed) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want it to be %s and to say %q", err, fault.Malformed, tt.want)
			}
		})
	}
	most := "username==(" + strings.Repeat("a or ", 199)
	if _, err := cql.Parse(records.User.Indexes, most+strings.Repeat("a", 16384-1-len(most))+")"); err != nil {
		t.Errorf("200 comparisons in 16384 bytes: got %v", err)
	}
	_, err := cql.Parse(records.Usergroup.Indexes, "expirationOffsetInDays>many")
	if !fault.Is(err, fault.Malformed) {
		t.Errorf("got %v, want %s", err, fault.Malformed)
	}
}
