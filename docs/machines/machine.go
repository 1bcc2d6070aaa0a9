// Command machine is a self-check machine that lends: machine URL TENANT SERVICE_POINT_ID
//
// Each line of the input is a patron's barcode, a blank and an item's barcode. Each line of the output
// is what the screen shows: "lent ITEM DUE-DATE", "refused ITEM WHY", "busy ITEM" or "unsure ITEM". The
// tries in between go to the error output.
package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	patience      = time.Minute      // that a patron is asked to wait through an outage
	longestAnswer = 45 * time.Second // if circulation does not tell it
)

// answer is that of circulation. Status 0 is none.
type answer struct {
	status  int
	header  http.Header
	DueDate string `json:"dueDate"`
	Errors  []struct {
		Message string `json:"message"`
	} `json:"errors"`
	LongestAnswerMs int `json:"longestAnswerMs"`
}

// mayRepeat reports whether the same request may succeed later.
func (a answer) mayRepeat() bool {
	switch a.status {
	case 0, http.StatusConflict, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return a.header.Get("X-Fault-Code") == "LOCK_NOT_ACQUIRED"
}

// mayHaveLent reports whether the item may be lent. The same request with the same key finds out.
func (a answer) mayHaveLent() bool {
	return a.status == 0 || a.mayRepeat() && a.status >= 500 && a.status != http.StatusServiceUnavailable
}

// pause is how long to wait before the next try.
func (a answer) pause() time.Duration {
	if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil {
		return time.Duration(seconds) * time.Second
	}
	return time.Second
}

type machine struct {
	url, tenant, servicePoint string
	client                    http.Client
}

func (m *machine) call(method, path, key string, body any) answer {
	sent, err := json.Marshal(body)
	if err != nil {
		return answer{}
	}
	req, err := http.NewRequest(method, m.url+path, bytes.NewReader(sent))
	if err != nil {
		return answer{}
	}
	req.Header.Set("X-Okapi-Tenant", m.tenant)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := m.client.Do(req)
	if err != nil {
		fmt.Fprintln(os.Stderr, "no answer:", err)
		return answer{}
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, header: resp.Header}
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil && a.status == http.StatusCreated {
		return answer{} // the answer was cut off
	}
	return a
}

// lend returns what the screen shows.
func (m *machine) lend(patron, item string) string {
	key := rand.Text() // one for all tries of this check-out
	body := map[string]string{"itemBarcode": item, "userBarcode": patron, "servicePointId": m.servicePoint}
	unsure := false
	for end := time.Now().Add(patience); ; {
		a := m.call(http.MethodPost, "/circulation/check-out-by-barcode", key, body)
		switch {
		case a.status == http.StatusCreated:
			return "lent " + item + " " + a.DueDate
		case !a.mayRepeat():
			return "refused " + item + " " + a.describe()
		}
		unsure = unsure || a.mayHaveLent()
		pause := a.pause()
		switch {
		case time.Now().Add(pause).Before(end):
			fmt.Fprintln(os.Stderr, "again after", a.status, a.header.Get("X-Fault-Code"))
			time.Sleep(pause)
		case unsure:
			return "unsure " + item
		default:
			return "busy " + item
		}
	}
}

// describe says why an item is not lent.
func (a answer) describe() string {
	if len(a.Errors) == 0 {
		return fmt.Sprintf("this machine is not set up (%d)", a.status)
	}
	var messages []string
	for _, e := range a.Errors {
		messages = append(messages, e.Message)
	}
	return strings.Join(messages, "; ")
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: machine URL TENANT SERVICE_POINT_ID")
		os.Exit(2)
	}
	m := &machine{url: strings.TrimSuffix(os.Args[1], "/"), tenant: os.Args[2], servicePoint: os.Args[3]}
	m.client.Timeout = longestAnswer
	if a := m.call(http.MethodGet, "/circulation/check-out-timing", "", nil); a.status == http.StatusOK {
		m.client.Timeout = time.Duration(a.LongestAnswerMs) * time.Millisecond
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		patron, item, _ := strings.Cut(lines.Text(), " ")
		fmt.Println(m.lend(patron, item))
	}
}
