// Package httpapi is circulation-storage's HTTP front: which path does what, and
// how requests and answers look. It knows the domain packages, not PostgreSQL.
package httpapi

import "checkoutlock/config/edge"

// A handler file has one type with a method `routes() []edge.Route`; handlers
// return faults, and package edge alone turns them into answers.
var _ = edge.Route{}
