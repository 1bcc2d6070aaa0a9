package schemas

// CountEdits returns how many characters have to be added, removed or replaced to make b of a.
func CountEdits(a, b []rune) int {
	row := make([]int, len(b)+1) // row[j] is the number for the part of a that was read and the first j of b
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		above := row[0]
		row[0] = i + 1
		for j, y := range b {
			edits := above
			if x != y {
				edits = 1 + min(above, row[j], row[j+1])
			}
			above, row[j+1] = row[j+1], edits
		}
	}
	return row[len(b)]
}
