package locktopus

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// Each step of a script is "CLIENT lock RESOURCE, RESOURCE" or "CLIENT release" or
// "CLIENT drop". After it, exactly the clients in acquires have got their locks.
type step struct {
	action   string
	acquires string
}

func TestQueue(t *testing.T) {
	tests := map[string][]step{
		"writers go first come, first served": {
			{"A lock w x", "A"},
			{"B lock w x", ""},
			{"C lock w x", ""},
			{"A release", "B"},
			{"B release", "C"},
		},
		"readers share": {
			{"A lock r x", "A"},
			{"B lock r x", "B"},
			{"C lock r x/1", "C"},
		},
		"a reader does not overtake a waiting writer": {
			{"A lock r x", "A"},
			{"B lock w x", ""},
			{"C lock r x", ""},
			{"A release", "B"},
			{"B release", "C"},
		},
		"readers behind a writer are let in together": {
			{"A lock w x", "A"},
			{"B lock r x", ""},
			{"C lock r x", ""},
			{"A release", "B C"},
		},
		"a path conflicts with those below and above it": {
			{"A lock w x/1", "A"},
			{"B lock w x", ""},
			{"C lock r x/1/2", ""},
			{"D lock w x/2", ""}, // behind B
			{"A release", "B"},
			{"B release", "C D"},
		},
		"unrelated paths never wait": {
			{"A lock w a", "A"},
			{"B lock w ab", "B"},
			{"C lock w b/a", "C"},
			{"D lock w A", "D"},
		},
		"a group is taken whole": {
			{"A lock w x", "A"},
			{"B lock w x, w y", ""},
			{"C lock w y", ""},
			{"D lock w z", "D"},
			{"A release", "B"},
			{"B release", "C"},
		},
		"opposite orders do not dead-lock": {
			{"A lock w x, w y", "A"},
			{"B lock w y, w x", ""},
			{"A release", "B"},
		},
		"duplicates and shadowed resources are harmless": {
			{"A lock w u, r u/v, w u, r users, w users/1", "A"},
			{"B lock r users/2", "B"},
			{"C lock r users", ""},
			{"D lock r u/v/w", ""},
			{"A release", "C D"},
		},
		"a read that waits does not delay a read": {
			{"A lock w y/1", "A"},
			{"B lock r y", ""},
			{"C lock r y/2", "C"},
		},
		"a read behind a writer does not wait for earlier readers": {
			{"A lock r x/1", "A"},
			{"B lock w x/2", "B"},
			{"C lock r x", ""},
			{"B release", "C"},
		},
		"a group that is released while it waits is out of the way": {
			{"A lock r y", "A"},
			{"B lock w y", ""},
			{"C lock r y", ""},
			{"B release", "C"},
		},
		"a waiting group whose connection ends is out of the way": {
			{"A lock r y", "A"},
			{"B lock w y", ""},
			{"C lock r y", ""},
			{"B drop", "C"},
		},
	}
	for name, script := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *harness) { f.play(script) })
		})
	}
}

func TestQueue_ComparesPathsExactly(t *testing.T) {
	tests := map[string]struct {
		held, asked string // JSON of paths
		waits       bool
	}{
		"a slash in a segment":            {held: `["a/b"]`, asked: `["a","b"]`, waits: false},
		"another case":                    {held: `["a"]`, asked: `["A"]`, waits: false},
		"the beginning of a segment":      {held: `["a"]`, asked: `["ab"]`, waits: false},
		"an empty child and its sibling":  {held: `["a",""]`, asked: `["a","b"]`, waits: false},
		"an empty child and its parent":   {held: `["a",""]`, asked: `["a"]`, waits: true},
		"an empty name and the namespace": {held: `[""]`, asked: `[]`, waits: true},
		"the whole namespace":             {held: `[]`, asked: `["a","b"]`, waits: true},
		"a path that is null":             {held: `["a"]`, asked: `null`, waits: true},
		"paths of many segments": {
			held: `["1","2","3","4","5","6","7","8","9","10","11"]`, asked: `["1","2","3","4","5","6","7","8","9","10"]`,
			waits: true,
		},
		"their siblings": {
			held: `["1","2","3","4","5","6","7","8","9","10","11"]`, asked: `["1","2","3","4","5","6","7","8","9","10","12"]`,
			waits: false,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *harness) {
				states := map[bool]string{false: "acquired", true: "enqueued"}
				for _, paths := range [][2]string{{tt.held, tt.asked}, {tt.asked, tt.held}} {
					first, second := f.connectTo("namespace="+url.QueryEscape(paths[0])), f.connectTo("namespace="+
						url.QueryEscape(paths[0]))
					first.send(`{"action":"lock","resources":[{"type":"write","path":` + paths[0] + `}]}`)
					first.wants("1", "lock", "acquired")
					second.send(`{"action":"lock","resources":[{"type":"read","path":` + paths[1] + `}]}`)
					second.wants("2", "lock", states[tt.waits])
				}
			})
		})
	}
}

// play checks the answers to each step, and that no other lock is granted.
func (f *harness) play(script []step) {
	f.t.Helper()
	clients, ids := map[string]*client{}, map[string]string{}
	locks := 0
	for i, s := range script {
		name, action, _ := strings.Cut(s.action, " ")
		if clients[name] == nil {
			clients[name] = f.connect("")
		}
		c, granted := clients[name], strings.Fields(s.acquires)
		switch kind, resources, _ := strings.Cut(action, " "); kind {
		case "lock":
			locks++
			ids[name] = fmt.Sprint(locks)
			c.lock(strings.Split(resources, ", ")...)
			if len(granted) == 0 {
				c.wants(ids[name], "lock", "enqueued")
			}
		case "release":
			c.release()
			c.wants(ids[name], "release", "ready")
		case "drop":
			c.drop()
		}
		for _, g := range granted {
			clients[g].wants(ids[g], "lock", "acquired")
		}
		for other, c := range clients {
			if text := c.pending(); text != "" {
				f.t.Errorf("after step %d, %s, client %s got %s", i+1, s.action, other, text)
			}
		}
	}
}
