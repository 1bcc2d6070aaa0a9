package engine

// PageSize is how many claims are compared at once.
const PageSize = pageSize

// WalkPage is how many locks Walk reads at once.
const WalkPage = walkPage
