package records

// LoanHistory is what each write made of a loan (mod-circulation-storage). The database writes it, so
// it can only be listed and deleted by query, and Types leaves it out.
var LoanHistory = Type{
	Name: "history of a loan", Path: "/loan-storage/loan-history", Collection: "loansHistory", Table: "loan_history", Schema: "loan",
	Permission: "circulation-storage.loans-history", Interface: "loan-storage 7.4", NewestFirst: true, Indexes: newIndexes(fields{
		Text: {"operation", "loan.action", "loan.actionComment", "loan.itemStatus", "loan.status.name"}, UUID: {"loan.userId", "loan.itemId"},
		Time: {"createdDate", "loan.metadata.updatedDate"},
	}).with("loan.id", Index{Kind: UUID, Column: "loan_id"}),
}
