package reporter

// Remembered counts the tenants that may have something to report.
func (r *Recorder) Remembered() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.tenants)
}
