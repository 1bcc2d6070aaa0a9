package staff

// FindSpan is findSpan for tests, which cannot change the time zone of the process.
var FindSpan = findSpan
