package drill

import (
	"time"

	"millrace/tools/cluster"
)

// Cases returns all cases, in the order of the list of what must be shown.
func Cases() []Case {
	const kill, freeze = 300 * time.Millisecond, 1200 * time.Millisecond
	return []Case{
		{
			Name: "cold", Item: 1, Runs: 9, First: coldFirst, Nodes: 4, topology: coldTree, run: cold,
			About: "first request of a stream at an edge behind a relay, 5 and 10 ms away; then a second viewer",
		},
		{
			Name: "owner-kill", Item: 2, Runs: 50, Gap: kill, P99: true, Nodes: 9, topology: city, run: ownerKill,
			About: "kill -9 of the node through which a stream enters a datacenter of eight; viewers on the other seven",
		},
		{
			Name: "owners-kill", Item: 2, Runs: 50, Gap: time.Second, P99: true, Nodes: 9, topology: city, run: ownersKill,
			About: "kill -9 of the owner and, within 100 ms, of the runner-up; viewers on the other six",
		},
		{
			Name: "owner-returns", Item: 2, Runs: 50, Gap: kill, Nodes: 9, topology: city, run: ownerReturns,
			About: "the owner was killed and comes back: the stream moves back to it; viewers on the other seven",
		},
		{
			Name: "owner-busy", Item: 2, Runs: 13, Gap: kill, Nodes: 1 + neighbours, topology: busyTown, run: ownerBusy,
			About: "the owner sends more than it can when a stream is first asked for, and later less; viewers on all four edges",
		},
		{
			Name: "upstream-kill", Item: 3, Runs: 50, Gap: kill, Nodes: 7, topology: fan(2), run: breakNode(cluster.Kill),
			About: "kill -9 of the upstream of four edges that know another",
		},
		{
			Name: "upstream-kill-far", Item: 3, Runs: 50, Gap: kill, Nodes: 7, topology: farFan, run: breakNode(cluster.Kill),
			About: "the same with the center 100 and 130 ms away, so that both upstreams are tried at the beginning",
		},
		{
			Name: "upstream-reset", Item: 3, Runs: 50, Gap: kill, Nodes: 7, topology: fan(2), run: breakLinks(cluster.Kill),
			About: "the connection to the upstream is reset, and refused from then on",
		},
		{
			Name: "upstream-stop", Item: 3, Runs: 50, Gap: freeze, Nodes: 7, topology: fan(2), run: breakNode(cluster.Freeze),
			About: "SIGSTOP of the upstream: its kernel still takes connections",
		},
		{
			Name: "upstream-freeze", Item: 3, Runs: 50, Gap: freeze, Nodes: 7, topology: fan(2), run: breakLinks(cluster.Freeze),
			About: "the link to the upstream passes nothing any more, and nobody is told",
		},
		{
			Name: "upstream-half-open", Item: 3, Runs: 50, Gap: freeze, Nodes: 7, topology: fan(2), run: breakLinks(cluster.HalfOpen),
			About: "the upstream's side of the connection is gone, the edge's is not told",
		},
		{
			Name: "upstream-returns", Item: 3, Runs: 50, Gap: kill, Nodes: 7, topology: fan(2), run: upstreamReturns,
			About: "kill -9 of the upstream, which comes back, and then of the other one; five streams on each of four edges",
		},
		{
			Name: "slow-one", Item: 4, Runs: 50, Stalls: true, Nodes: 7, topology: fan(2), run: slowOne,
			About: "the link to the upstream carries 60 % of the bitrate, another is good",
		},
		{
			Name: "slow-two", Item: 4, Runs: 50, Nodes: 8, topology: fan(3), run: slowTwo,
			About: "the links to two upstreams of three carry 60 % of the bitrate",
		},
		{
			Name: "slow-all", Item: 4, Runs: 13, Nodes: 7, topology: fan(2), run: slowAll,
			About: "the links to all upstreams carry 60 % of the bitrate",
		},
		{
			Name: "bursty-source", Item: 5, Runs: 13, Nodes: 7, topology: fan(2), run: burstySource,
			About: "the publisher sends 3 s of media at once, then nothing for 3 s, over and over",
		},
		{
			Name: "slow-source", Item: 5, Runs: 13, Nodes: 7, topology: fan(2), run: slowSource,
			About: "the publisher falls to 60 % of real time",
		},
		{
			Name: "linger", Item: 6, Runs: 3, Nodes: 2, topology: lingerTree, run: linger,
			About: "viewers leave and come back after 0 to 12 s in steps of 50 ms, each to a stream of its own; linger is 10 s",
		},
		{
			Name: "dead-pool", Item: 7, Runs: 50, First: deadFirst, Nodes: 5, topology: deadTree, run: deadPool,
			About: "a pool of a dead port, a black hole and a good node; then the good one is lost and the dead port comes to life",
		},
		{
			Name: "loops", Item: 8, Runs: 13, Nodes: 7, topology: loopTrees, run: loops,
			About: "two nodes with each other in their pools, one with itself, a circle of three",
		},
		{
			Name: "hops", Item: 8, Runs: 13, Nodes: 1 + chain, topology: chainTree, run: hops,
			About: "a chain of a center and seven nodes: the last one's request has passed more nodes than it may",
		},
		{
			Name: "slow-reader", Item: 9, Runs: 13, Gap: 200 * time.Millisecond, Nodes: 7, topology: readersTree, run: slowReader,
			About: "one of five edges of a relay gets 1 % of the bandwidth that it needs; viewers on the other four",
		},
		{
			Name: "publisher-moves", Item: 10, Runs: 50, Nodes: 6, topology: movesTree, run: publisherMoves,
			About: "the publisher leaves center 1 and is at center 2 within a second, or a little before it has left",
		},
		{
			Name: "keys", Item: 10, Runs: 13, Nodes: 6, topology: keysTree, run: keys,
			About: "the key of the cluster is exchanged in three steps, one node after another; new streams are asked for and links are reset meanwhile",
		},
		{
			Name: "trunks", Item: 3, Runs: 5, Apart: true, Nodes: 4, topology: trunkTree, run: trunks(hundred()),
			About: "a hundred streams over one trunk, whose upstream is killed, frozen, reset and slowed in random order",
		},
		{
			Name: "trunks-many", Item: 3, Runs: 5, Apart: true, Nodes: 4, topology: trunkTree, run: trunks(hundreds()),
			About: "the same with three hundred streams, over a few trunks",
		},
		{
			Name: "chaos", Item: 11, Runs: 1, Apart: true, Nodes: 6, topology: chaosTree, run: chaos,
			About: "10,000 random steps over five names and six nodes: publish, view, leave, break, heal; then all must work and nothing be left",
		},
	}
}
