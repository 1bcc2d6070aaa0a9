package policy

import "regexp"

// Mention is the id of a record in a line of circulation rules. Kind is the letter before it: that of a
// criterion, or of a policy; "" for none.
type Mention struct {
	Kind, ID   string
	Start, End int // bytes in the line
}

var kindOrID = regexp.MustCompile(`(?i)\b([a-z])\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)

// FindMentions returns the ids in a line, in order, also those in a comment. It takes lines that cannot be parsed, too.
func FindMentions(line string) []Mention {
	var found []Mention
	kind := ""
	for _, at := range kindOrID.FindAllStringSubmatchIndex(line, -1) {
		if at[2] >= 0 {
			kind = line[at[2]:at[3]]
			continue
		}
		found = append(found, Mention{Kind: kind, ID: line[at[0]:at[1]], Start: at[0], End: at[1]})
	}
	return found
}
