package lock

// Constants of the package.
const (
	PlaceKept    = placeKept
	MaxGrants    = maxGrants
	LongestRun   = longestRun
	LongestYield = longestYield
)

// Lines is how many patrons have a line of waiters.
func (s *Service) Lines() int {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return len(s.queue.lines)
}

// Calls is how many requests have a call that runs.
func (s *Service) Calls() int {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return len(s.queue.calls)
}

// Awaited is how many locks are known to have a line.
func (s *Service) Awaited() int {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return len(s.queue.awaited)
}
