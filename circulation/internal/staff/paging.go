package staff

import (
	"strconv"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// offsetOf reads how many entries a list skips. Fault: Invalid.
func offsetOf(v *visit) (int, error) {
	text := v.QueryParam("offset")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > schemas.MaxHistoryOffset {
		return 0, fault.New(fault.Invalid, "offset is %s, allowed are 0 to %d", fault.Shown(text), schemas.MaxHistoryOffset)
	}
	return n, nil
}

// neighbours are the paths of the pages before and after, with the same filters;
// empty for none.
func neighbours(v *visit, page string, offset, size int, more bool) (newer, older string) {
	at := func(offset int) string {
		q := v.Request().URL.Query()
		q.Del("done")
		q.Set("offset", strconv.Itoa(offset))
		return v.path(page) + "?" + q.Encode()
	}
	if offset > 0 {
		newer = at(max(0, offset-size))
	}
	if more && offset+size <= schemas.MaxHistoryOffset {
		older = at(offset + size)
	}
	return newer, older
}
