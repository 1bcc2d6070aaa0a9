package wire

import (
	"bytes"
	"fmt"
	"strconv"
)

// Detection says how a terminal uses sequence numbers and checksums.
type Detection string

// The ways of error detection.
const (
	DetectErrors  Detection = "auto"     // messages with a checksum are checked and answered with one
	RequireErrors Detection = "required" // messages without a checksum are refused
	IgnoreErrors  Detection = "off"      // nothing is checked, and answers have no checksum
)

const (
	sequenceWidth = len("AY1")
	checksumWidth = len("AZF594")
)

// trailer is the error detection at the end of a message.
type trailer struct {
	sequence string // one digit, "" without AY
	checked  bool   // with AZ
	right    bool   // the checksum is that of the message
}

// checksumOf returns four hexadecimal digits: the lower 16 bits of the negative sum of all bytes up
// to the Z of AZ.
func checksumOf(message []byte) string {
	var sum uint16
	for _, b := range message {
		sum += uint16(b)
	}
	return fmt.Sprintf("%04X", -sum)
}

// cutTrailer separates a message from its sequence number and checksum. They may begin at first,
// and the variable fields begin at fields. AY with AZ may follow a value that has no delimiter. One
// of them alone stands where a field begins, as a value may end like it.
func cutTrailer(line []byte, first, fields int) ([]byte, trailer) {
	rest, t := line, trailer{}
	beginsField := func(at int) bool { return at == first || at == fields || line[at-1] == '|' }
	at := len(line) - checksumWidth
	if at >= first && bytes.HasPrefix(line[at:], []byte("AZ")) {
		sequenceAt := at - sequenceWidth
		paired := sequenceAt >= first && bytes.HasPrefix(line[sequenceAt:], []byte("AY"))
		if paired || beginsField(at) {
			t.checked, t.right = true, isChecksum(line[at+2:], line[:at+2])
			rest = line[:at]
		}
	}
	at = len(rest) - sequenceWidth
	if at >= first && bytes.HasPrefix(rest[at:], []byte("AY")) && (t.checked || beginsField(at)) && isDigit(rest[at+2]) {
		t.sequence = string(rest[at+2])
		rest = rest[:at]
	}
	return rest, t
}

func isChecksum(digits, message []byte) bool {
	_, err := strconv.ParseUint(string(digits), 16, 16)
	return err == nil && string(bytes.ToUpper(digits)) == checksumOf(message)
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
