package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"checkoutlock/integration-tests/stack"
)

// listenForMachines returns the settings of SIP2. Variables of the user come later, and win.
func listenForMachines(s settings) []string {
	return []string{fmt.Sprintf("SIP2_ADDR=127.0.0.1:%d", s.MachinePort), "SIP2_TENANT=" + s.Tenant}
}

// addTerminals lets two self-check machines sign in at the demo library, unless they may already.
func addTerminals(ctx context.Context, st stack.Client, s settings) error {
	if s.Sample == "none" {
		return nil
	}
	for i, login := range []string{"desk-1", "desk-2"} {
		answer, err := st.Do(ctx, http.MethodPost, "/self-check-terminals", map[string]any{
			"id": fmt.Sprintf("5e1fc4ec-0000-4000-8000-00000000000%d", i+1), "login": login, "password": login + "-password",
			"name": "Self-check machine " + login, "libraryName": "Demo Library", "institution": s.Tenant,
			"servicePointId": "bbc823fa-06e7-42c6-87b5-605a5da22f15",
		})
		if err != nil {
			return err
		}
		exists := answer.Status == http.StatusUnprocessableEntity && strings.Contains(string(answer.Body), "already")
		if answer.Status != http.StatusCreated && !exists {
			return fmt.Errorf("terminal %s: status %d: %s", login, answer.Status, answer.Body)
		}
	}
	return nil
}

// printMachineSession prints a session of a self-check machine. It lends a book, and takes it back.
func printMachineSession(out io.Writer, addr string) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return // SIP2 is off
	}
	fmt.Fprintf(out, "\nA session of a self-check machine: login, status, check-out, check-in\n\n"+
		`now="$(date '+%%Y%%m%%d    %%H%%M%%S')"`+"\n"+
		`printf '%%s\r' '9300CNdesk-1|COdesk-1-password|' 9900802.00 "11NN$now                  AO|AAP-1002|ABB-1001|AC|" \`+"\n"+
		`  "09N$now${now}AP|AO|ABB-1001|AC|" | nc -q 2 %s %s | tr '\r' '\n'`+"\n", host, port)
}
