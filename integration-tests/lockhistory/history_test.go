package lockhistory

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// made is a call of a made history, in milliseconds.
type made struct {
	from, to int
	call     Call
	answer   Answer
}

func TestModel(t *testing.T) {
	t.Parallel()
	const ttl = 100
	during := func(from, to int, c Call, a Answer) made { return made{from: from, to: to, call: c, answer: a} }
	grant := func(from, to int, holder, id string) made {
		return during(from, to, Call{Kind: Acquire, Holder: holder}, Answer{Done, id})
	}
	for _, tt := range []struct {
		name  string
		calls []made
		legal bool
	}{
		{name: "one after the other", legal: true, calls: []made{
			grant(0, 1, "a", "1"), during(2, 3, Call{Kind: Release, ID: "1"}, Answer{Outcome: Done}), grant(4, 5, "b", "2"),
		}},
		{name: "a held lock that is granted", legal: false, calls: []made{grant(0, 1, "a", "1"), grant(2, 3, "b", "2")}},
		{name: "a lock that is granted after its end", legal: true, calls: []made{
			grant(0, 1, "a", "1"), grant(90, 101, "b", "2"),
		}},
		{name: "a grant before the end of a renewed lock", legal: false, calls: []made{
			grant(0, 1, "a", "1"),
			during(50, 51, Call{Kind: Renew, Holder: "a", ID: "1"}, Answer{Done, "1"}),
			grant(102, 130, "b", "2"),
		}},
		{name: "a lock that is held for longer than its time to live", legal: false, calls: []made{
			grant(0, 1, "a", "1"), during(130, 131, Call{Kind: Acquire, Holder: "b"}, Answer{Outcome: Held}),
		}},
		{name: "a renewal by the same id of an ended lock", legal: false, calls: []made{
			grant(0, 1, "a", "1"), during(130, 131, Call{Kind: Renew, Holder: "a", ID: "1"}, Answer{Done, "1"}),
		}},
		{name: "a release of the lock of another", legal: false, calls: []made{
			grant(0, 1, "a", "1"), during(2, 3, Call{Kind: Release, Holder: "b"}, Answer{Outcome: Done}),
		}},
		{name: "an unknown release", legal: true, calls: []made{
			grant(0, 1, "a", "1"), during(2, 3, Call{Kind: Release, ID: "1"}, Answer{Outcome: Unknown}), grant(4, 5, "b", "2"),
		}},
		{name: "an unknown grant that is read", legal: true, calls: []made{
			during(0, 1, Call{Kind: Acquire, Holder: "a"}, Answer{Outcome: Unknown}),
			during(2, 3, Call{Kind: Read}, Answer{Done, "1"}),
			grant(4, 5, "a", "1"),
		}},
		{name: "two unknown grants, and both are read", legal: false, calls: []made{
			during(0, 1, Call{Kind: Acquire, Holder: "a"}, Answer{Outcome: Unknown}),
			during(2, 3, Call{Kind: Read}, Answer{Done, "1"}),
			during(4, 5, Call{Kind: Read}, Answer{Done, "2"}),
		}},
		{name: "a refused waiter had the lock for a moment", legal: true, calls: []made{
			grant(0, 1, "a", "1"),
			during(2, 3, Call{Kind: Acquire, Holder: "b"}, Answer{Outcome: Refused}),
			during(2, 4, Call{Kind: Release, ID: "1"}, Answer{Outcome: Done}),
			during(5, 6, Call{Kind: Read}, Answer{Done, "2"}),
			grant(7, 8, "c", "3"),
		}},
		{name: "no client waited for the lock that is read", legal: false, calls: []made{
			grant(0, 1, "a", "1"),
			during(2, 4, Call{Kind: Release, ID: "1"}, Answer{Outcome: Done}),
			during(5, 6, Call{Kind: Read}, Answer{Done, "2"}),
		}},
		{name: "a refused waiter had the lock of another", legal: false, calls: []made{
			grant(0, 1, "a", "1"),
			during(2, 3, Call{Kind: Acquire, Holder: "b"}, Answer{Outcome: Refused}),
			during(5, 6, Call{Kind: Read}, Answer{Done, "2"}),
			during(7, 8, Call{Kind: Release, ID: "1"}, Answer{Outcome: Done}),
		}},
		{name: "a forced release", legal: true, calls: []made{
			grant(0, 1, "a", "1"),
			during(2, 3, Call{Kind: Force, ID: "1"}, Answer{Outcome: Done}),
			grant(4, 5, "b", "2"),
			during(6, 7, Call{Kind: Renew, Holder: "a", ID: "1"}, Answer{Outcome: Absent}),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var history []porcupine.Operation
			for i, m := range tt.calls {
				m.call.version = i + 1
				at := func(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }
				history = append(history, newOperation(0, m.call, m.answer, at(m.from), at(m.to)))
				if m.call.Kind == Acquire || m.call.Kind == Renew {
					x := Call{Kind: expire, version: i + 1}
					history = append(history, newOperation(0, x, Answer{Outcome: Done}, at(m.from+ttl), at(m.to+ttl)))
				}
			}
			history = allowWithdrawn(history, ttl*time.Millisecond)
			if got := porcupine.CheckOperations(model.ToModel(), history); got != tt.legal {
				t.Errorf("legal is %t, want %t", got, tt.legal)
			}
		})
	}
}
