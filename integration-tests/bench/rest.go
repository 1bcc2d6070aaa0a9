package main

// rest says where the time of the targets goes that are hard to reach: what the profiles show,
// and what would have to go. Its figures are medians of runs on the machine of the report with
// nothing else under way. Ratios are those of one run.
var rest = []string{
	`*Pairs at 64 clients, beside plain (wanted: 2.8 x).* The ceiling is only 3.4 to 3.8 x plain here, so 2.8 x plain is about 0.8 of the ceiling. ` +
		`HTTP alone takes about 220 us of the two processors for a pair. So about 50 us would be left for routes, checks, metrics, the statements and PostgreSQL.`,

	`*Pair at 1 client, p50 (wanted: 0.75 x plain).* Both send two HTTP requests. Plain sends three statements and storage two, so storage saves one of 75 us. ` +
		`A group of one runs in the caller's goroutine, in one round trip, without a timer. The rest is work that plain does not do. ` +
		`Of storage's 0.36 to 0.40 ms of CPU, 27 % are the two statements with their system calls. 13 % are writes of answers, 10 % reads of requests, ` +
		`6 % the deadlines of net/http, 5 % the body with its schema, 14 % switches between goroutines. No part of ours is above 5 %. ` +
		`PostgreSQL takes 0.27 ms, and the time-outs that bound the wait for a row are 17 us of each statement's 100.`,

	`*Contended, one storage (wanted: 1.15 x ideal).* The p99 of the waits is 1.07 to 1.20 of the p50 while the machine does nothing else. ` +
		`A pause of any process delays all 15 waiters, so other load raises the p99 to 2 and more. ` +
		`Of 5.8 to 6.4 ms for a turn, 5.16 are the client's timer of 5 ms. The turns left to other instances take about 0.15 ms each. ` +
		`0.6 to 1.05 ms are the release, its UPDATE, and the answer that wakes the next client. ` +
		`A pair without a pause takes 0.4 ms for as much, so the rest is processors and caches that were idle for 5 ms.`,

	`*Check-outs at 8 clients (wanted: 2.5 x base).* A check-out takes 0.7 ms of circulation's CPU, 1.0 of storage's, and 1.0 in PostgreSQL's statements. ` +
		`Both profiles of Go are flat. In circulation 21 % are the connections to storage and 14 % reading JSON. ` +
		`In storage 24 % are the transaction, 22 % system calls, 10 % writing answers and reading requests, 6 % reading and checking the commit. ` +
		`PostgreSQL's longest statements are the INSERT of the loan (0.33 ms), the facts (0.22), the INSERT of the lock and the UPDATE of the item (0.1 each) and the recount (0.07). ` +
		`Of the first, 85 us write the loan's history, 38 us make the two date columns, 22 us fill their indexes.`,

	`*What newer promises cost.* The trigger of the loan history takes 5 % of PostgreSQL's CPU and 3.4 % of a check-out's; most of it writes the row. ` +
		`Three limits of the patron's group cost nothing that can be measured (0.99 x).`,

	`*The lock's share of a check-out (wanted: 20 %).* It is one HTTP request and one INSERT, and in the commit the fence, the recount and the DELETE.`,

	`*Renewals (wanted: 3 x Locket 1.5).* Plain, a server with one UPDATE for each call and nothing else, has 2.0 to 2.4 x. ` +
		`At 1 client, 3 x leaves 0.21 ms for a renewal. The call of the ceiling takes 0.10 ms, and plain's UPDATE with its commit 0.19. ` +
		`At 8 clients, 3 x leaves 0.21 ms of the two processors. The ceiling takes 0.08 ms of them, and plain 0.27. ` +
		`Renewals that share a statement and a commit take less than plain. A single client has none to share them with.`,
}

// dropped are the optimisations that went out again: they gain less than 3 %, or cost more elsewhere.
var dropped = [][]string{
	{"tried, and not kept", "gain"},
	{"profile-guided optimisation, with profiles of check-outs and pairs", "CPU of the services 0.98 to 1.02 x"},
	{"BEGIN and its time-outs in the first batch of the commit, one round trip less", "storage's and PostgreSQL's CPU 0.97 x, p50 of a check-out 0.99 x"},
	{
		"the first try for the lock in the call for the facts, so 2 calls instead of 3",
		"check-outs/s 1.09 x at 1 client, 1.07 x at 8; but the first refusal of a patron takes 1.7 x as long, because it gives the lock back",
	},
	{"the fence deletes the lock, without a DELETE of its own", "check-outs/s 1.00 to 1.02 x"},
	{"COMMIT in the last batch of the commit, one round trip less", "check-outs/s 1.00 x, CPU of the services 0.98 x"},
	{"facts without proxy, ids and requests for titles where none are asked for", "their statement 0.85 x, CPU of a check-out 0.99 x"},
	{"limits of groups without an aggregate, open loans counted in Go", "their statement 0.92 x, CPU of a check-out 0.99 x"},
	{"sequential scans turned off for lending, instead of new plans when tables have grown", "none for tables that were vacuumed while empty: PostgreSQL reads whole indexes"},
	{"history without a search_path of its own, and with a plain column", "the INSERT of a loan 0.93 x, CPU of a check-out 0.995 x"},
	{"history in the INSERT of the loan instead of the trigger", "the INSERT of a loan 0.87 x, CPU of a check-out 0.99 x"},
	{"room for HOT updates of items and loans", "none: indexes read the JSON, which every update changes"},
	{"two groups of renewals at once", "renewals/s of 8 clients 0.92 x, of 64 clients 0.79 x"},
	{"a group of renewals that waits for the callers of the last one, for 0.3 or 1 ms at most", "renewals/s of 8 clients 0.8 x"},
	{"session parameters instead of set_config, for the statements of claims", "the lock of the namespace 0.83 x, a hand-over 0.99 x"},
	{"a shallower stack for web sockets that wait", "their stacks 0.6 x, but the next garbage collection took 124 ms instead of 45 to 65"},
	{"GOGC=300 for resource-locks", "CPU of a renewal 1.06 x; memory with 10,000 waiting claims 1.5 x"},
}

// explainRest writes where the rest goes behind the measurements.
func (r *report) explainRest() {
	r.begin("where the rest goes")
	for _, text := range rest {
		r.note("%s", text)
	}
	r.table(dropped)
}
