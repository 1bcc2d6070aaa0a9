package lock

import "time"

// PlaceKept is how long a place is kept, as ARCHITECTURE.md states it.
const PlaceKept = 250 * time.Millisecond

// Constants of the package.
const (
	MaxGrants    = maxGrants
	LongestRun   = longestRun
	LongestYield = longestYield
	LongestPoll  = longestPoll
)

// Lines is how many patrons have a line.
func (s *Service) Lines() int {
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	return len(s.lines.byPatron)
}

// Calls is how many calls run.
func (s *Service) Calls() int {
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	n := 0
	for _, ln := range s.lines.byPatron {
		n += len(ln.callers)
	}
	return n
}

// Awaited is how many locks are known to have a line.
func (s *Service) Awaited() int {
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	return len(s.lines.awaited)
}
