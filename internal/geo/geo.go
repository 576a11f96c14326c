// Package geo tells where an address is: in which region, and at which ISP.
//
// It computes on bytes that others have read: a coverage file of the operator and,
// where there are any, mmdb files (city, ISP, ASN). It opens no file and reads no
// clock. A [Table] is immutable and safe from any goroutine; new files make a new
// table, which its owner swaps in. A file with a fault makes none, so the old one
// stays.
//
// # Coverage
//
// A line of the coverage file names a CIDR, a region and an ISP:
//
//	# CIDR            REGION    ISP
//	1.2.0.0/16        beijing   telecom
//	1.2.3.0/24        beijing   unicom     # the longest CIDR around an address wins
//	2001:db8:5::/48,  shanghai, mobile     # commas do as well as blanks
//	1.3.0.0/16        beijing   *          # ISP: what the mmdb says, else unknown
//	1.2.4.0/24        *         *          # all as if no line named it
//
// # Order of decision
//
//  1. The coverage file, the longest CIDR first.
//  2. Addresses that no player on the Internet has (private, shared, loopback,
//     link-local, documentation, multicast, reserved) are [SourcePrivate]: no region, no
//     ISP, whatever an mmdb says of them. An operator with players in such networks
//     names them in the coverage file.
//  3. The mmdb files in their order, each for the names that are still missing.
//  4. Else the place is [SourceUnknown]: no region and no ISP.
//
// # How much of the address counted
//
// The files are brought into disjoint ranges, in which neighbours differ. So a place
// comes with the exact number of bits that decided it, holes and neighbours included:
// [Place.Bits] is what a DNS answer may give as its scope.
//
// # Cost and limits
//
// Half a million lines are parsed in 0.6 s and compiled in 0.2 s on one core; a look-up
// among them takes 60 ns for IPv4 and 130 ns for IPv6, and does not allocate (see the
// benchmarks). Files are bounded before anything is made of them: [MaxCoverageBytes],
// [MaxCoverageEntries], [MaxMMDBBytes]; and so is what comes out: [MaxPairs]. The tree of
// an mmdb file is walked within bounds, whatever it says.
package geo

import "fmt"

// Source says who knew a place.
type Source uint8

const (
	SourceUnknown  Source = iota // nobody
	SourcePrivate                // an address that no player on the Internet has
	SourceCoverage               // the coverage file
	SourceMMDB                   // an mmdb file
	SourceGiven                  // the caller; see [Table.Find]
)

var sources = [...]string{"unknown", "private", "coverage", "mmdb", "given"}

// String returns the word for s in logs, metrics and answers.
func (s Source) String() string {
	if int(s) < len(sources) {
		return sources[s]
	}
	return fmt.Sprintf("source(%d)", uint8(s))
}

// MarshalText returns the word for s.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Pair is a region and an ISP; what is not known is empty.
type Pair struct {
	Region string `json:"region,omitempty"`
	ISP    string `json:"isp,omitempty"`
}

// Place is where an address is.
type Place struct {
	Pair
	Source Source `json:"source"`
	// Bits is the length of the largest prefix around what was asked for in which
	// every address has this same answer, and at most the length of what was asked
	// for. A prefix with several answers inside has its own length.
	Bits int `json:"bits"`
	// Index is where the Pair stands in [Table.Pairs], -1 for one that is not there.
	// The empty pair has index 0.
	Index int32 `json:"-"`
}
