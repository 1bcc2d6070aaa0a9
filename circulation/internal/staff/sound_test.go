package staff_test

import (
	"regexp"
	"strings"
	"testing"
)

var (
	idPattern      = regexp.MustCompile(`\sid="([^"]*)"`)
	refPattern     = regexp.MustCompile(`\s(?:for|aria-labelledby|aria-describedby|data-target)="([^"]*)"`)
	anchorPattern  = regexp.MustCompile(`\shref="#([^"]*)"`)
	headingPattern = regexp.MustCompile(`<h([1-6])\b`)
	inputPattern   = regexp.MustCompile(`<(?:input|select|textarea)\b[^>]*>`)
	cellPattern    = regexp.MustCompile(`<th\b[^>]*>`)
	inlinePattern  = regexp.MustCompile(`<[^>]*\s(?:style|on[a-z]+)=|<style|<script(?:>|\s[^>]*>[^<])|javascript:`)
)

// sound checks what holds for all pages: headers, ids once each, references that
// lead somewhere, labels, headings in order, nothing inline that the policy forbids.
func sound(t *testing.T, p page) {
	t.Helper()
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self';", "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "same-origin", "Cache-Control": "no-store", "Cross-Origin-Opener-Policy": "same-origin",
	} {
		if got := p.header.Get(name); !strings.HasPrefix(got, want) {
			t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	ids := map[string]int{}
	for _, m := range idPattern.FindAllStringSubmatch(p.html, -1) {
		if ids[m[1]]++; ids[m[1]] > 1 {
			t.Errorf("the id %s stands there twice", m[1])
		}
	}
	for _, m := range append(refPattern.FindAllStringSubmatch(p.html, -1),
		anchorPattern.FindAllStringSubmatch(p.html, -1)...) {
		for ref := range strings.FieldsSeq(m[1]) {
			if ids[ref] == 0 {
				t.Errorf("%s leads nowhere", m[0])
			}
		}
	}
	for _, input := range inputPattern.FindAllString(p.html, -1) {
		id := idPattern.FindStringSubmatch(input)
		hidden := strings.Contains(input, `type="hidden"`)
		if !hidden && (id == nil || !strings.Contains(p.html, `<label for="`+id[1]+`"`)) {
			t.Errorf("%s has no label", input)
		}
	}
	last := "0"
	for _, m := range headingPattern.FindAllStringSubmatch(p.html, -1) {
		if m[1] > last && m[1][0]-last[0] > 1 || last != "0" && m[1] == "1" {
			t.Errorf("a heading %s follows %s", m[1], last)
		}
		last = m[1]
	}
	for _, cell := range cellPattern.FindAllString(p.html, -1) {
		if !strings.Contains(cell, "scope=") {
			t.Errorf("%s has no scope", cell)
		}
	}
	if found := inlinePattern.FindString(p.html); found != "" {
		t.Errorf("%s would not be run", found)
	}
}
