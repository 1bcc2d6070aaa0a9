package lockhistory

import (
	"time"

	"github.com/anishathalye/porcupine"
)

// allowWithdrawn lets refused acquires have had the lock for a short time, if a client read a lock
// that no acquire was answered with. A release hands the lock over to the first waiter. If that one's
// wait ends meanwhile, it is refused, and the lock is withdrawn: only a read sees it. The result is
// the calls, and the ends of the locks that they may have had.
func allowWithdrawn(calls []porcupine.Operation, ttl time.Duration) []porcupine.Operation {
	granted := map[string]bool{"": true}
	for _, o := range calls {
		if a := o.Output.(Answer); o.Input.(Call).Kind == Acquire && a.Outcome == Done {
			granted[a.ID] = true
		}
	}
	var ends []porcupine.Operation
	for _, read := range calls {
		seen := read.Input.(Call)
		if seen.Kind != Read || granted[read.Output.(Answer).ID] {
			continue
		}
		for i, o := range calls {
			c := o.Input.(Call)
			last := o.Return + int64(late)
			if c.Kind != Acquire || c.Key != seen.Key || o.Output.(Answer).Outcome != Refused || o.Call > read.Return || last < read.Call {
				continue
			}
			calls[i].Output, calls[i].Return = Answer{Outcome: Unknown}, last
			end := Call{Kind: expire, Key: c.Key, version: c.version}
			ends = append(ends, porcupine.Operation{
				ClientId: o.ClientId, Input: end, Output: Answer{Outcome: Done}, Call: o.Call, Return: last + int64(ttl),
			})
		}
	}
	return append(calls, ends...)
}
