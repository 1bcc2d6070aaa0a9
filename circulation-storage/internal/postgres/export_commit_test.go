package postgres

// CountOpenLoansSQL lets a test look at the plan.
const CountOpenLoansSQL = countOpenLoansSQL
