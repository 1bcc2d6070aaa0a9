package main

import (
	"strings"
	"testing"
)

func TestCountEnds(t *testing.T) {
	t.Parallel()
	ended, printed := countEnds([]byte(`{"Action":"start","Package":"p"}
{"Action":"run","Test":"TestA"}
{"Action":"output","Test":"TestA","Output":"quiet"}
{"Action":"pass","Test":"TestA"}
{"Action":"output","Test":"TestB/x","Output":"why"}
{"Action":"fail","Test":"TestB/x"}
{"Action":"fail","Test":"TestB"}
{"Action":"skip","Test":"TestC"}
no JSON
{"Action":"fail","Package":"p"}
`))
	if ended["pass"] != 1 || ended["fail"] != 2 || ended["skip"] != 1 || !strings.Contains(printed, "why") ||
		strings.Contains(printed, "quiet") {
		t.Errorf("got %v and %q", ended, printed)
	}
}
