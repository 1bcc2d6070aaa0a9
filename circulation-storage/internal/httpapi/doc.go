// Package httpapi is circulation-storage's HTTP front: which path does what, and
// how requests and answers look. It knows the domain packages, not PostgreSQL.
package httpapi
