// Package wire reads and writes the messages of SIP2, the 3M Standard Interchange Protocol 2.00.
// A self-check machine asks, and the service answers. The package knows lines and fields, and no
// records.
//
// A Reader cuts what a machine sends into lines, and Parse makes a Request of a line:
//
//	line, err := reader.Line()
//	request, err := wire.Parse(line, wire.CP850, wire.DetectErrors)
//	patron, item := request.Field("AA"), request.Field("AB")
//	lendOnly := !request.Flag(wire.RenewalPolicy)
//	sent, known := request.Time(wire.Date, zone)
//
// A handler makes an Answer. Its fields are written in the order in which it adds them:
//
//	a := wire.NewAnswer("12", "1NUY", wire.FormatDate(now))
//	a.Add("AO", request.Institution(configured)) // a required field is written also if it is empty
//	a.Add("AA", patron)
//	a.AddFilled("CK", medium) // an optional one is not
//	a.Say("Please put the receipt into the book.")
//
// Refusal makes the answer that refuses a request, for each kind of message:
//
//	a := wire.Refusal(request, configured, now, "This machine is not signed in.")
//
// Encode writes an answer in the characters of the terminal. It cuts values, and replaces
// control characters, so handlers need not.
package wire
