package main

import (
	_ "embed"
	"fmt"
	"io"
	"strings"

	"checkoutlock/integration-tests/stack"
)

// The comments of the session are echo commands, because an interactive zsh has no comments.
//
//go:embed session.sh
var session string

// formatSession returns the session of the README with those values.
func formatSession(tenant, circulation, storage string) string {
	return fmt.Sprintf("tenant=%s circulation=%s storage=%s\n%s", tenant, circulation, storage, session)
}

// printGreeting prints commands to paste and then the addresses. The addresses are last, so
// that they stay on the screen. privateDatabase is empty if the database is the user's own.
func printGreeting(out io.Writer, pair *stack.Stack, locks *stack.ResourceLocks, s settings, privateDatabase string) {
	circulation, storage := pair.Circulations[0], pair.Storages[0]
	if s.Sample == "none" {
		fmt.Fprintf(out, "\nThere is no demo library (SAMPLE=none). See the lock settings with\n\n"+
			"curl -H 'X-Okapi-Tenant: %s' %s/circulation/check-out-lock-settings\n", s.Tenant, circulation)
	} else {
		fmt.Fprintf(out, "\nA session to paste into another terminal, or to run as a script:\n\n%s", formatSession(s.Tenant, circulation, storage))
	}
	if s.Sample != "none" {
		printMachineSession(out, pair.Machines[0])
	}
	printLockExamples(out, locks)
	fmt.Fprintf(out, "\nThe services are up for tenant %s. Ctrl-C stops everything.\n\n", s.Tenant)
	signIn := ""
	if s.StaffAuth == "basic" {
		signIn = " (any name, and the password in STAFF_PASSWORD)"
	}
	for _, line := range [][2]string{
		{"staff pages", circulation + "/staff/" + s.Tenant + "/" + signIn},
		{"page of locks", locks.URL("operators") + "/locks/" + signIn},
		{"circulation", circulation},
		{"circulation-storage", storage},
		{"SIP2", pair.Machines[0]},
		{"log", s.LogFile},
	} {
		fmt.Fprintf(out, "  %-20s %s\n", line[0], line[1])
	}
	if privateDatabase != "" {
		fmt.Fprintf(out, "  %-20s export DATABASE_URL='%s'\n", "database", privateDatabase)
	}
	for _, command := range []string{"circulation-storage locks -tenant " + s.Tenant, "resource-locks list"} {
		name, _, _ := strings.Cut(command, " ")
		fmt.Fprintf(out, "  %-20s go run ./%s/cmd/%s\n", "", name, command)
	}
}
