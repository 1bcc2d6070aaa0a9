package admission

// Patrons counts the patrons that the line keeps.
func (l *Line) Patrons() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.patrons)
}
