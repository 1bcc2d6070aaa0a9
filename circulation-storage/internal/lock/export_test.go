package lock

// PlaceKept is placeKept.
const PlaceKept = placeKept

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
