package engine

// PageSize is how many claims are compared at once.
const PageSize = pageSize
