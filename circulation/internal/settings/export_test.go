package settings

// Remembered returns the number of tenants that s remembers.
func (s *Store) Remembered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tenants)
}
