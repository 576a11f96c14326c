package quality

import (
	"net/netip"
	"time"

	"millrace/internal/address"
)

const (
	// window is the time of an allowance.
	window = 10 * time.Second
	// perAddress is how many reports of one address are taken in it. Behind an address may
	// be a whole company, each player of which sends one.
	perAddress = 200
	// maxAddresses bounds how many addresses are remembered in it.
	maxAddresses = 65_536
)

// allowances counts what came of each address in the window that is under way.
type allowances struct {
	until time.Time
	used  map[netip.Addr]uint16
}

// take reports whether one more of an address may come.
func (a *allowances) take(now time.Time, from netip.Addr) bool {
	if !now.Before(a.until) {
		a.until = now.Add(window)
		if a.used == nil || len(a.used) > maxAddresses/16 {
			a.used = make(map[netip.Addr]uint16)
		}
		clear(a.used)
	}
	from = address.Source(from)
	n, known := a.used[from]
	if n >= perAddress || !known && len(a.used) >= maxAddresses {
		return false
	}
	a.used[from] = n + 1
	return true
}
