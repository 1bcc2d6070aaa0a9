package schemas

// CirculationRules is the body of GET and PUT /circulation-rules-storage: the
// tenant's one text of rules (FOLIO's circulation-rules.json).
type CirculationRules struct {
	ID          string `json:"id,omitempty"` // of the record; ignored in a PUT
	RulesAsText string `json:"rulesAsText"`
}
