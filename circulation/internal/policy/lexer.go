package policy

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

type tokenKind int

const (
	tokenEnd        tokenKind = iota // end of the text
	tokenNewline                     // end of a line that is not empty
	tokenIndent                      // the next line stands deeper
	tokenDedent                      // one level of nesting ends
	tokenLetter                      // a criterion letter
	tokenPolicyType                  // a policy letter
	tokenName                        // any other word
	tokenKeyword                     // a reserved word, or one of : , ( ) + !
	tokenInvalid                     // the text cannot be read further; text holds the message
)

type token struct {
	kind         tokenKind
	text         string
	line, column int
}

// isKeyword reports whether t is the given reserved word or sign.
func (t token) isKeyword(keyword string) bool { return t.kind == tokenKeyword && t.text == keyword }

// tokenNames describe the tokens that have no text of their own.
var tokenNames = map[tokenKind]string{
	tokenEnd: "end of text", tokenNewline: "end of line", tokenIndent: "indentation", tokenDedent: "end of indentation",
}

// String describes the token in an error message.
func (t token) String() string {
	if name, ok := tokenNames[t.kind]; ok {
		return name
	}
	return "'" + t.text + "'"
}

// lexer splits a text into tokens. It ignores lines without a token (blank ones, comments) and
// their indentation.
type lexer struct {
	tokens  []token
	indents []int // indentation of the open levels, outermost first; level 0 stays open
	line    int
	rest    string // the rest of the current line
	column  int    // where rest begins, in characters
}

// lex always returns a list that ends with tokenEnd or tokenInvalid.
func lex(text string) []token {
	l := &lexer{indents: []int{0}}
	for i, line := range SplitLines(text) {
		l.line, l.column, l.rest = i+1, 0, line
		if !l.lexLine() {
			return l.tokens
		}
	}
	l.indentTo(0)
	l.emit(tokenEnd, "")
	return l.tokens
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// SplitLines returns all lines of a text, also those without a token. Line numbers count them. A line
// ends with \n, \r\n or \r.
func SplitLines(text string) []string { return strings.Split(lineEnds.Replace(text), "\n") }

// lexLine reports whether the line could be read.
func (l *lexer) lexLine() bool {
	empty := true
	for {
		l.skip(len(l.rest) - len(strings.TrimLeft(l.rest, " ")))
		if l.rest == "" || l.rest[0] == '#' || l.rest[0] == '/' {
			l.skip(len(l.rest))
			if !empty {
				l.emit(tokenNewline, "")
			}
			return true
		}
		if message := describeInvalid(l.rest); message != "" {
			l.emit(tokenInvalid, message)
			return false
		}
		if empty {
			l.indentTo(l.column)
			empty = false
		}
		l.lexToken()
	}
}

const signs = ":,()+!"

// describeInvalid says what is wrong with the first character of the rest of a line, or returns "".
// FOLIO drops an unknown character silently, so that a typing error in a name makes another name.
// The message is ANTLR's.
func describeInvalid(rest string) string {
	switch {
	case isWordByte(rest[0]), strings.IndexByte(signs, rest[0]) >= 0:
		return ""
	case rest[0] == '\t':
		return "Tabulator character is not allowed, use spaces instead."
	default:
		r, _ := utf8.DecodeRuneInString(rest)
		return fmt.Sprintf("token recognition error at: %q", r)
	}
}

func (l *lexer) lexToken() {
	n := 0
	for n < len(l.rest) && isWordByte(l.rest[n]) {
		n++
	}
	if n > 0 {
		l.emit(classifyWord(l.rest[:n]), l.rest[:n])
	} else {
		n = 1
		l.emit(tokenKeyword, l.rest[:n])
	}
	l.skip(n)
}

func (l *lexer) emit(kind tokenKind, text string) {
	l.tokens = append(l.tokens, token{kind: kind, text: text, line: l.line, column: l.column})
}

// skip skips the next n bytes of the line.
func (l *lexer) skip(n int) {
	l.column += utf8.RuneCountInString(l.rest[:n])
	l.rest = l.rest[n:]
}

// indentTo opens or closes levels until the innermost one has the given indentation. A line between
// two levels gets both an end and a beginning of indentation, which no statement allows.
func (l *lexer) indentTo(indent int) {
	for l.indents[len(l.indents)-1] > indent {
		l.indents = l.indents[:len(l.indents)-1]
		l.emit(tokenDedent, "")
	}
	if l.indents[len(l.indents)-1] < indent {
		l.indents = append(l.indents, indent)
		l.emit(tokenIndent, "")
	}
}

func classifyWord(word string) tokenKind {
	switch word {
	case "priority", "first-line", "last-line", "criterium", "number-of-criteria", "all", "fallback-policy":
		return tokenKeyword
	}
	switch {
	case len(word) == 1 && strings.Contains(criteriaLetters, word):
		return tokenLetter
	case len(word) == 1 && strings.Contains(kindLetters, word):
		return tokenPolicyType
	default:
		return tokenName
	}
}

func isWordByte(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-'
}
