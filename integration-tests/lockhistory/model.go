package lockhistory

import "github.com/anishathalye/porcupine"

// Kind is what a call asks for.
type Kind string

// The kinds of calls. Each names a key.
const (
	Acquire Kind = "acquire" // for Holder
	Renew   Kind = "renew"   // the lock ID of Holder
	Release Kind = "release" // the lock ID, or that of Holder if ID is empty
	Force   Kind = "force"   // release the lock ID, or the one that is there
	Read    Kind = "read"
	expire  Kind = "expire" // the end of the time to live that the call of the version began
)

// Outcome is how a call ended.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"
	Held    Outcome = "held"    // refused: another holder has the lock
	Absent  Outcome = "absent"  // refused: there is no such lock
	Refused Outcome = "refused" // for no reason that the model judges, such as a place in line
	Unknown Outcome = "unknown" // it may have happened
)

// Call is one call of a client.
type Call struct {
	Kind   Kind
	Key    string
	Holder string
	ID     string // of the lock
	// Keep says that an Acquire of the own lock does not begin its time to live anew.
	Keep bool

	version int // of the call; for expire, of the call that began the time to live
}

// Answer is what a client got. ID is that of the lock which was granted or read; empty for none.
type Answer struct {
	Outcome Outcome
	ID      string
}

// unknownID is that of a lock whose grant was not answered.
const unknownID = "?"

// lock is the state of a key. The zero lock is none.
type lock struct {
	holder, id string
	version    int // of the call that began its time to live
}

func (l lock) isOf(c Call) bool {
	return l != lock{} && (c.ID == "" || l.id == c.ID || l.id == unknownID) && (c.Holder == "" || l.holder == c.Holder)
}

// step returns the states that a call may leave, with its answer; none for an answer that is wrong.
func (l lock) step(c Call, a Answer) []lock {
	switch {
	case a.Outcome == Unknown:
		after := l.step(c, Answer{Outcome: Done, ID: unknownID})
		return append(after, l)
	case a.Outcome == Refused:
		return []lock{l}
	case c.Kind == Acquire:
		return l.acquire(c, a)
	case c.Kind == Read:
		return l.read(a)
	case c.Kind == expire:
		if l.version == c.version {
			return []lock{{}}
		}
		return []lock{l}
	}
	switch {
	case a.Outcome == Absent && (!l.isOf(c) || l.id == unknownID):
		return []lock{l}
	case a.Outcome == Held && l != (lock{}) && l.holder != c.Holder:
		return []lock{l}
	case a.Outcome != Done || !l.isOf(c):
		return nil
	case c.Kind == Renew:
		return []lock{{holder: l.holder, id: c.ID, version: c.version}}
	}
	return []lock{{}}
}

func (l lock) acquire(c Call, a Answer) []lock {
	granted := lock{holder: c.Holder, id: a.ID, version: c.version}
	switch {
	case a.Outcome == Held && l != (lock{}) && l.holder != c.Holder:
		return []lock{l}
	case a.Outcome == Done && l == lock{}:
		return []lock{granted}
	case a.Outcome != Done || l.holder != c.Holder:
		return nil
	case a.ID == unknownID:
		granted.id = l.id
	case l.id != unknownID && l.id != a.ID:
		return nil
	}
	if c.Keep {
		granted.version = l.version
	}
	return []lock{granted}
}

func (l lock) read(a Answer) []lock {
	switch {
	case a.ID == unknownID, l.id == a.ID:
		return []lock{l}
	case l.id == unknownID && a.ID != "":
		return []lock{{holder: l.holder, id: a.ID, version: l.version}}
	}
	return nil
}

// model judges the calls of one key.
var model = porcupine.NondeterministicModel{
	Init: func() []any { return []any{lock{}} },
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		keys := map[string]int{}
		var parts [][]porcupine.Operation
		for _, o := range history {
			key := o.Input.(Call).Key
			if _, known := keys[key]; !known {
				keys[key], parts = len(parts), append(parts, nil)
			}
			parts[keys[key]] = append(parts[keys[key]], o)
		}
		return parts
	},
	Step: func(state, input, output any) []any {
		var after []any
		for _, l := range state.(lock).step(input.(Call), output.(Answer)) {
			after = append(after, l)
		}
		return after
	},
}
