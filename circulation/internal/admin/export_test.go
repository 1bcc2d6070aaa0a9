package admin

// RememberedFigures counts the figures that are kept, outdated ones too.
func (s *Service) RememberedFigures() int { return s.figures.Len() }

// RememberedNames counts the names that are kept, outdated ones too.
func (s *Service) RememberedNames() int { return s.names.Len() }
