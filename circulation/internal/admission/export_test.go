package admission

// Patrons is how many patrons the line knows.
func (l *Line) Patrons() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.patrons)
}
