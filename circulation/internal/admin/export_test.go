package admin

// RememberedFigures counts what is kept, old ones too.
func (s *Service) RememberedFigures() int {
	s.figures.mu.Lock()
	defer s.figures.mu.Unlock()
	return len(s.figures.askings)
}

// RememberedNames counts what is kept of who looked.
func (s *Service) RememberedNames() int {
	s.names.mu.Lock()
	defer s.names.mu.Unlock()
	return len(s.names.kept)
}
