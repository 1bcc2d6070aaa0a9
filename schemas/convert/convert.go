// Package convert makes lists of other lists.
package convert

// All returns what f makes of each element of a list, in its order. An empty list is not nil.
func All[E, R any](list []E, f func(E) R) []R {
	converted := make([]R, len(list))
	for i, element := range list {
		converted[i] = f(element)
	}
	return converted
}
