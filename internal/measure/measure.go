// Package measure finds out how good the ways to other nodes are: it sends small trains
// of signed UDP packets to the nodes that this one pulls from or might pull from, answers
// those of others, and puts what came of them together with what the pulls themselves
// have shown into samples for the router.
//
//	Prober ── train ──▶ Responder of another node
//	   │  ◀── echo ───     (never longer than the question, at most one each)
//	   ▼
//	Collector ◀── upstream.LinkFigures
//	   │
//	   ▼
//	plan.Sample, one for each node and second
//
// # Trains
//
// Trains go out in turn, one target after another, so that all of them together stay
// within a budget, whatever number of targets there is. A packet carries the random number
// of its train and the time at which it was signed. The answer is signed over the question's
// signature: the responder keeps nothing, and the prober its questions.
//
// # What a stranger can do
//
// A responder looks at size and magic first, then at what is left of the allowance of the
// source address, then at the time, and only then at the signature. What it answers is as
// long as what was asked, so that nobody is flooded through it with more than was sent.
// A packet that was overheard and is sent again is answered again within the allowed skew
// of the clocks: to its claimed sender, who drops what it does not wait for.
package measure
