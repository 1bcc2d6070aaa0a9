package wire_test

import (
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/sip2/wire"
)

// FuzzParse reads any line, answers it, and checks that the answer is one line with a right checksum.
func FuzzParse(f *testing.F) {
	for _, line := range []string{
		"9300CNuser_id|COpassw0rd|AY1AZF594",
		"9900402.00|AY1AZFC28",
		"11NN20260105    101500                  AOmain|AAP-1002|ABD-2003|AC|AY4AZEFFE",
		"6300120260105    101500  Y       AOmain|AAP-1002|AC|BP1|BQ5|AY3AZF07C",
		"97AZFEF5", "99", "23001", "AY1AZ0000",
	} {
		for detection := range 3 {
			f.Add([]byte(line), detection, detection)
		}
	}
	sets := []wire.CharacterSet{wire.CP850, wire.ISO88591, wire.Windows1252, wire.UTF8}
	detections := []wire.Detection{wire.DetectErrors, wire.RequireErrors, wire.IgnoreErrors}
	f.Fuzz(func(t *testing.T, line []byte, set, detection int) {
		s := sets[uint(set)%4]
		r, err := wire.Parse(line, s, detections[uint(detection)%3])
		if err != nil {
			return
		}
		if !strings.HasPrefix(string(line), r.Body()) {
			t.Errorf("the body %q is no part of the line", r.Body())
		}
		for _, field := range []string{"AA", "AB", "AO", "BP"} {
			r.Number(field)
		}
		r.Time(wire.Date, time.UTC)
		answer := wire.Refusal(r, "", time.Unix(0, 0), r.Field("AA"), string(line)).Encode(r, s)
		if strings.ContainsAny(string(answer), "\r\n\x00") {
			t.Errorf("the answer %q is no line", answer)
		}
		at := strings.LastIndex(string(answer), "AZ")
		if r.Checked && (at < 0 || wire.ChecksumOf(answer[:at+2]) != string(answer[at+2:])) {
			t.Errorf("the answer %q has a wrong checksum", answer)
		}
	})
}
