package lock

// PlaceKept is placeKept.
const PlaceKept = placeKept

// Lines is how many patrons have a line of waiters.
func (s *Service) Lines() int {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return len(s.queue.lines)
}
