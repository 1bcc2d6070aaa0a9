package oversight

// RememberedFigures counts what is kept, old ones too.
func (s *Service) RememberedFigures() int {
	s.figures.mu.Lock()
	defer s.figures.mu.Unlock()
	return len(s.figures.askings)
}
