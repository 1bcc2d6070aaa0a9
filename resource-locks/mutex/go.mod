// The Go client of the mutex. It is a module of its own and requires no other, so that other
// programs can import it.
module checkoutlock/resource-locks/mutex

go 1.26.0
