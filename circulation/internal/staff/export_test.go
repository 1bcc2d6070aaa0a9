package staff

// LocalSpan is localSpan for tests, which cannot change the time zone of the process.
var LocalSpan = localSpan
