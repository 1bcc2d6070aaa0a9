package reporter

// Remembered counts the tenants that there may be something to tell of.
func (r *Recorder) Remembered() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.tenants)
}
