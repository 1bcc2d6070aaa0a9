package records

// fields lists indexes that are read from the JSON, by their kind.
type fields map[Kind][]string

// columns names the generated column of each id that has one.
type columns map[string]string

// index builds a type's allow-list: what it lists, and what every record has.
func index(listed fields, generated ...columns) indexes {
	all := indexes{
		"id":                       {Kind: UUID, Column: "id"},
		"metadata.createdDate":     {Kind: Time},
		"metadata.updatedDate":     {Kind: Time},
		"metadata.createdByUserId": {Kind: UUID},
		"metadata.updatedByUserId": {Kind: UUID},
	}
	for kind, names := range listed {
		for _, name := range names {
			all[name] = Index{Kind: kind}
		}
	}
	for _, c := range generated {
		for name, column := range c {
			all[name] = Index{Kind: UUID, Column: column}
		}
	}
	return all
}

// indexes is an allow-list.
type indexes map[string]Index

// inColumn names the generated column of an index that is no id.
func (all indexes) inColumn(name, column string) indexes {
	all[name] = Index{Kind: all[name].Kind, Column: column}
	return all
}
