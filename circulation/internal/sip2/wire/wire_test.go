package wire_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/sip2/wire"
)

// TestParse_ReadsEveryRequest has a request of each kind with a right checksum.
func TestParse_ReadsEveryRequest(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"9300CNuser_id|COpassw0rd|AY1AZF594",
		"9300CNkiosk1|COsecret|CPbbc823fa-06e7-42c6-87b5-605a5da22f15|AY0AZEC61",
		"9900402.00AY1AZFCA4",
		"9900402.00|AY1AZFC28",
		"3520260105    101500AOmain|AAP-1002|AC|AD|AY0AZF40C",
		"2300120260105    101500AOmain|AAP-1002|AC|AD|AY2AZF37C",
		"01N20260105    101500AOmain|ALcard left behind|AAP-1002|AC|AY1AZEDCD",
		"6300120260105    101500  Y       AOmain|AAP-1002|AC|BP1|BQ5|AY3AZF07C",
		"11NN20260105    101500                  AOmain|AAP-1002|ABD-2003|AC|AY4AZEFFE",
		"29NN20260105    101500                  AOmain|AAP-1002|ABD-2001|AC|AY7AZEFF4",
		"6520260105    101500AOmain|AAP-1002|AC|BON|AY8AZF3A7",
		"09N20260105    10150020260105    101500AP|AOmain|ABD-2003|AC|AY6AZF07D",
		"1720260105    101500AOmain|ABD-2003|AC|AY9AZF50D",
		"15+20260105    101500BS|BY2|AOmain|AAP-1002|ABD-2004|AC|BON|AY3AZEEF6",
		"2520260105    101500AOmain|AAP-1002|AC|AY2AZF50C",
		"3720260105    1015000100EURBV2.50|AOmain|AAP-1002|AC|AY4AZF181",
		"1920260105    101500AOmain|ABD-2003|AC|CHtorn|AY5AZF245",
		"97AZFEF5",
		"97",
		"99AY1",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			r, err := wire.Parse([]byte(line), wire.CP850, wire.DetectErrors)
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.Contains(line, "AZ"); r.Checked != want {
				t.Errorf("Checked = %t, want %t", r.Checked, want)
			}
			if r.Code != "97" && !strings.HasPrefix(line, r.Body()+"AY"+r.Sequence) {
				t.Errorf("body %q and sequence %q are not those of the line", r.Body(), r.Sequence)
			}
		})
	}
}

func TestParse_ReadsFields(t *testing.T) {
	t.Parallel()
	r := parse(t, "63001202601050000101500  y       "+
		"AO main |AA P-1002 |AA2|ABAB12|AD s |BP007|BQx|BIy|ZZ?|A|BT   |CK006")
	for _, c := range []struct{ name, got, want string }{
		{name: "a value has no blanks at its ends", got: r.Field("AO"), want: "main"},
		{name: "the first of two fields counts", got: r.Field("AA"), want: "P-1002"},
		{name: "a value may look like a field", got: r.Field("AB"), want: "AB12"},
		{name: "a password keeps its blanks", got: r.Field("AD"), want: " s "},
		{name: "blanks are the same as nothing", got: r.Field("BT"), want: ""},
		{name: "the last field needs no delimiter", got: r.Field("CK"), want: "006"},
		{name: "an absent field is empty", got: r.Field("AH"), want: ""},
		{name: "a fixed field is as it was sent", got: r.Fixed(wire.Summary), want: "  y       "},
		{name: "the language", got: r.Language(), want: "001"},
		{name: "the institution of the request", got: r.Institution(""), want: "main"},
		{name: "the configured institution", got: r.Institution("other"), want: "other"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, c.got, c.want)
		}
	}
	if n, ok := r.Number("BP"); n != 7 || !ok {
		t.Errorf("BP = %d, %t", n, ok)
	}
	if _, ok := r.Number("BQ"); ok {
		t.Error("BQ is no number")
	}
	if !r.Yes("BI") || r.Yes("AO") {
		t.Error("y is yes, and all else is no")
	}
}

func parse(t *testing.T, line string) wire.Request {
	t.Helper()
	r, err := wire.Parse([]byte(line), wire.CP850, wire.DetectErrors)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestParse_AcceptsStrangeRequests has what clients send, though the standard has it otherwise.
func TestParse_AcceptsStrangeRequests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, line, id, value string }{
		{name: "a print width without zeros", line: "990401.00", id: "AO", value: ""},
		{name: "99 without a fixed part", line: "99", id: "AO", value: ""},
		{name: "99 with a checksum alone", line: "9900402.00AZFD6F", id: "AO", value: ""},
		{name: "99 with a sequence number alone", line: "9900402.00AY1", id: "AO", value: ""},
		{name: "99 without a fixed part and with fields", line: "99|AOmain|", id: "AO", value: "main"},
		{name: "a delimiter before the first field", line: "9300|CNa|COb|", id: "CN", value: "a"},
		{name: "three delimiters at the end", line: "9300CNa|COb|||", id: "CO", value: "b"},
		{
			name: "a checksum after a value without a delimiter", line: "9300CNuser_id|COpassw0rdAY1AZF610", id: "CO",
			value: "passw0rd",
		},
		{name: "a checksum without a sequence number", line: "9300CNa|COb|AZFBBB", id: "CO", value: "b"},
		{name: "a value that ends like a checksum", line: "9300CNa|COxAZ1234", id: "CO", value: "xAZ1234"},
		{name: "lower-case digits", line: "9300CNuser_id|COpassw0rd|AY1AZf594", id: "CO", value: "passw0rd"},
		{name: "a sequence number without a checksum", line: "9300CNa|COb|AY3", id: "CO", value: "b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := parse(t, c.line).Field(c.id); got != c.value {
				t.Errorf("%s = %q, want %q", c.id, got, c.value)
			}
		})
	}
}

func TestParse_RefusesWhatIsNoRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, line string
		detection  wire.Detection
		checked    bool
	}{
		{name: "a code alone of one digit", line: "9", detection: wire.DetectErrors, checked: false},
		{name: "an unknown code", line: "42", detection: wire.DetectErrors, checked: false},
		{name: "an unknown code with a checksum", line: "42AY1AZ0000", detection: wire.DetectErrors, checked: true},
		{name: "the code of an answer", line: "941", detection: wire.DetectErrors, checked: false},
		{name: "a short fixed part", line: "2300120260105", detection: wire.DetectErrors, checked: false},
		{name: "a delimiter in the fixed part", line: "93|0CNa|", detection: wire.DetectErrors, checked: false},
		{name: "a wrong checksum", line: "9300CNuser_id|COpassw0rd|AY1AZF595", detection: wire.DetectErrors, checked: true},
		{
			name: "a checksum of three digits", line: "9300CNuser_id|COpassw0rd|AY1AZF59", detection: wire.DetectErrors,
			checked: true,
		},
		{
			name: "a checksum of other letters", line: "9300CNuser_id|COpassw0rd|AY1AZG594",
			detection: wire.DetectErrors, checked: true,
		},
		{
			name: "a sign among the digits", line: "9300CNuser_id|COpassw0rd|AY1AZ+594", detection: wire.DetectErrors,
			checked: true,
		},
		{
			name: "a sequence number that is no digit", line: "9300CNa|AYxAZFC19", detection: wire.DetectErrors,
			checked: true,
		},
		{name: "no checksum where one is required", line: "9300CNa|COb|", detection: wire.RequireErrors, checked: false},
		{name: "an unknown code, unchecked", line: "42AY1AZ0000", detection: wire.IgnoreErrors, checked: false},
		{name: "NUL", line: "9300CNa\x00|", detection: wire.DetectErrors, checked: false},
		{name: "a tab", line: "9300CNa\t|", detection: wire.IgnoreErrors, checked: false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := wire.Parse([]byte(c.line), wire.CP850, c.detection)
			var malformed *wire.MalformedError
			if !errors.As(err, &malformed) {
				t.Fatalf("got %v, want a MalformedError", err)
			}
			if malformed.Checked != c.checked {
				t.Errorf("Checked = %t, want %t", malformed.Checked, c.checked)
			}
		})
	}
}

func TestParse_DetectionOff_IgnoresTheChecksum(t *testing.T) {
	t.Parallel()
	sequences := map[string]string{"9300CNa|COb|AY1AZ0000": "1", "9300CNa|AY1AZ00": "", "9300CNa|AYx|": ""}
	for line, sequence := range sequences {
		r, err := wire.Parse([]byte(line), wire.CP850, wire.IgnoreErrors)
		if err != nil || r.Checked || r.Sequence != sequence {
			t.Errorf("%s: got %+v, %v", line, r, err)
		}
	}
}

func TestParse_ReadsAResendWithAWrongChecksum(t *testing.T) {
	t.Parallel()
	if r := parse(t, "97AZ0000"); r.Code != wire.Resend || !r.Checked {
		t.Errorf("got %+v", r)
	}
}

func TestAnswer_IsWrittenAsTheContractHasIt(t *testing.T) {
	t.Parallel()
	const at = "20260105    101500"
	loan := wire.NewAnswer("12", "1NUY", at)
	loan.Add("AO", "main")
	loan.Add("AA", "P-1002")
	loan.Add("AB", "D-2003")
	loan.Add("AJ", "Metropolis")
	loan.Add("AH", "20260126    235959")
	loan.AddFilled("AF", "")
	renewed := wire.NewAnswer("66", "1", wire.Count(1, 4), wire.Count(1, 4), at)
	renewed.Add("AO", "main")
	renewed.Add("BM", "D-2001")
	renewed.Add("BN", "D-2002")
	renewed.Say("D-2002: no renewals left")
	for _, c := range []struct {
		answer wire.Answer
		line   string
	}{
		{loan, "121NUY20260105    101500AOmain|AAP-1002|ABD-2003|AJMetropolis|AH20260126    235959|AY4AZE91E"},
		{renewed, "6610001000120260105    101500AOmain|BMD-2001|BND-2002|AFD-2002: no renewals left|AY8AZE951"},
		{wire.NewAnswer("94", "1"), "941AY1AZFDFC"},
	} {
		sequence := strings.Split(c.line, "AY")[1][:1]
		if got := c.answer.Encode(wire.Request{Sequence: sequence, Checked: true}, wire.CP850); string(got) != c.line {
			t.Errorf("got  %s\nwant %s", got, c.line)
		}
	}
	if got := string(wire.AskAgain(true)) + string(wire.AskAgain(false)); got != "96AZFEF696" {
		t.Errorf("got %s", got)
	}
}

// TestRefusal_AnswersEachRequest has the refusals of the contract, and others in their shape.
func TestRefusal_AnswersEachRequest(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 5, 10, 15, 0, 0, time.UTC)
	for _, c := range []struct{ request, text, want string }{
		{
			request: "15+20260105    101500BS|BY2|AOmain|AAP-1002|ABD-2004|AC|BON|AY3AZEEF6",
			text:    "Please place requests in the catalogue.",
			want:    "160N20260105    101500AOmain|AAP-1002|ABD-2004|AFPlease place requests in the catalogue.|AY3AZE3DE",
		},
		{
			request: "3720260105    1015000100EURBV2.50|AOmain|AAP-1002|AC|AY4AZF181", text: "Fees are paid at the desk.",
			want: "38N20260105    101500AOmain|AAP-1002|AFFees are paid at the desk.|AY4AZEBD1",
		},
		{
			request: "1920260105    101500AOmain|ABD-2003|AC|CHtorn|AY5AZF245", text: "Please tell the desk.",
			want: "20020260105    101500ABD-2003|AFPlease tell the desk.|AY5AZF014",
		},
		{
			request: "11NN20260105    101500                  AOmain|AAP-1|ABD-1|", text: "No.",
			want: "120NUN20260105    101500AOmain|AAP-1|ABD-1|AJ|AH|AFNo.|",
		},
		{
			request: "29NN20260105    101500                  AOmain|AAP-1|ABD-1|", text: "No.",
			want: "300NUN20260105    101500AOmain|AAP-1|ABD-1|AJ|AH|AFNo.|",
		},
		{
			request: "09N20260105    10150020260105    101500AP|AOmain|ABD-1|", text: "No.",
			want: "100NUY20260105    101500AOmain|ABD-1|AQ|CV99|AFNo.|",
		},
		{
			request: "6520260105    101500AOmain|AAP-1|", text: "No.",
			want: "66000000000" + "20260105    101500AOmain|AFNo.|",
		},
		{request: "1720260105    101500AOmain|ABD-1|", text: "No.", want: "1801010120260105    101500ABD-1|AJ|AFNo.|"},
		{
			request: "2300120260105    101500AOmain|AAP-1|", text: "No.",
			want: "24YYYY          00120260105    101500AOmain|AAP-1|AE|AFNo.|",
		},
		{
			request: "01N20260105    101500AOmain|AAP-1|", text: "No.",
			want: "24YYYY          00020260105    101500AOmain|AAP-1|AE|AFNo.|",
		},
		{
			request: "2520260105    101500AOmain|AAP-1|", text: "No.",
			want: "26YYYY          00020260105    101500AOmain|AAP-1|AE|AFNo.|",
		},
		{
			request: "6300120260105    101500  Y       AOmain|AAP-1|", text: "No.",
			want: "64YYYY          00120260105    101500000000000000    00000000AOmain|AAP-1|AE|AFNo.|",
		},
		{request: "3520260105    101500AOmain|AAP-1|", text: "No.", want: "36N20260105    101500AOmain|AAP-1|AFNo.|"},
		{request: "9300CNa|COb|", text: "No.", want: "940"},
	} {
		r := parse(t, c.request)
		if got := wire.Refusal(r, "", at, c.text).Encode(r, wire.CP850); string(got) != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestEncode_WritesCharacters(t *testing.T) {
	t.Parallel()
	long, umlauts := strings.Repeat("0123456789 ", 30), strings.Repeat("ä", 255)
	for _, c := range []struct {
		name, id, value string
		set             wire.CharacterSet
		want            string
	}{
		{name: "CP850", id: "AJ", value: "Käse", set: wire.CP850, want: "94AJK\x84se|"},
		{name: "ISO 8859-1", id: "AJ", value: "Käse", set: wire.ISO88591, want: "94AJK\xe4se|"},
		{name: "Windows-1252", id: "AJ", value: "10 €", set: wire.Windows1252, want: "94AJ10 \x80|"},
		{name: "UTF-8", id: "AJ", value: "Łódź", set: wire.UTF8, want: "94AJŁódź|"},
		{
			name: "a letter of another language", id: "AJ", value: "Łódź Ćirić", set: wire.ISO88591,
			want: "94AJL\xf3dz Ciric|",
		},
		{name: "a letter and its mark", id: "AJ", value: "Ka\u0308se", set: wire.ISO88591, want: "94AJK\xe4se|"},
		{name: "a character without a likeness", id: "AJ", value: "本", set: wire.CP850, want: "94AJ?|"},
		{name: "control characters", id: "AJ", value: "a|b\r\nc\td", set: wire.UTF8, want: "94AJa b  c d|"},
		{name: "a long value is cut", id: "AJ", value: long, set: wire.UTF8, want: "94AJ" + long[:255] + "|"},
		{
			name: "a long text goes on in another field", id: "AF", value: long, set: wire.UTF8,
			want: "94AF" + long[:252] + "|AF" + long[253:] + "|",
		},
		{
			name: "a long text without blanks", id: "AG", value: umlauts + "ä", set: wire.UTF8,
			want: "94AG" + umlauts + "|AGä|",
		},
	} {
		a := wire.NewAnswer("94")
		a.Add(c.id, c.value)
		if got := string(a.Encode(wire.Request{}, c.set)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAnswer_Print(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]string{
		0: "AFone two three|AFfour|AGone two three|AGfour|", 8: "AFone two three|AFfour|AGone two|AGthree|AGfour|",
		-1: "AFone two three|AFfour|AGone two three|AGfour|", 999: "AFone two three|AFfour|AGone two three|AGfour|",
	} {
		a := wire.NewAnswer("24")
		a.Say("one two three", "four")
		a.Print(width)
		if got := string(a.Encode(wire.Request{}, wire.UTF8)); got != "24"+want {
			t.Errorf("%d: got %s, want 24%s", width, got, want)
		}
	}
}

func TestParse_BytesThatAreNoCharactersMatchNoBarcode(t *testing.T) {
	t.Parallel()
	const ue = "\x81" // ü in CP850
	for set, odd := range map[wire.CharacterSet]string{wire.UTF8: "\xff", wire.Windows1252: ue, wire.ISO88591: ue} {
		r, err := wire.Parse([]byte("3520260105    101500AOmain|AAP-"+odd+"1|"), set, wire.DetectErrors)
		if err != nil || r.Field("AA") != "P-\uFFFD1" {
			t.Errorf("%s: AA = %q, %v", set, r.Field("AA"), err)
		}
	}
}

func TestRequest_Time(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, date, want string }{
		{name: "local time", date: "20260705    101500", want: "2026-07-05T10:15:00+02:00"},
		{name: "zeros in place of the zone", date: "202607050000101500", want: "2026-07-05T10:15:00+02:00"},
		{name: "UTC", date: "20260705   Z101500", want: "2026-07-05T10:15:00Z"},
		{name: "one hour east", date: "20260705   A101500", want: "2026-07-05T10:15:00+01:00"},
		{name: "nine hours east", date: "20260705   I101500", want: "2026-07-05T10:15:00+09:00"},
		{name: "ten hours east", date: "20260705   K101500", want: "2026-07-05T10:15:00+10:00"},
		{name: "twelve hours east", date: "20260705   M101500", want: "2026-07-05T10:15:00+12:00"},
		{name: "one hour west", date: "20260705   N101500", want: "2026-07-05T10:15:00-01:00"},
		{name: "twelve hours west", date: "20260705   Y101500", want: "2026-07-05T10:15:00-12:00"},
		{name: "J is no zone", date: "20260705   J101500", want: "none"},
		{name: "a word is no zone", date: "20260705 UTC101500", want: "none"},
		{name: "no day", date: "20260732    101500", want: "none"},
		{name: "no time", date: "20260705    246000", want: "none"},
		{name: "blanks", date: strings.Repeat(" ", 18), want: "none"},
	} {
		r := parse(t, "17"+c.date+"ABD-1|")
		got := "none"
		if at, ok := r.Time(wire.Date, berlin); ok {
			got = at.Format(time.RFC3339)
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestFormatDate(t *testing.T) {
	t.Parallel()
	if got := wire.FormatDate(time.Date(2026, 1, 5, 10, 15, 0, 0, time.UTC)); got != "20260105    101500" {
		t.Errorf("got %q", got)
	}
	if got := wire.FormatDate(time.Time{}); got != strings.Repeat(" ", 18) {
		t.Errorf("got %q", got)
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	if got := wire.Count(3, 4) + wire.Count(-1, 4) + wire.Count(12345, 4) + wire.Count(0, 4); got != "0003    99990000" {
		t.Errorf("got %q", got)
	}
}
