package main

import (
	"net/netip"
	"time"

	"millrace/internal/sched"
)

// kind is what a resolver is like, seen from a player.
type kind int

const (
	near   kind = iota // of the player's ISP, in its region
	farECS             // in another region, and sends the player's subnet
	far                // in another region, and hides the player
	kinds
)

var kindWords = [kinds]string{"near", "far, with ECS", "far, without ECS"}

// resolver asks the scheduler for players and keeps what it hears.
type resolver struct {
	addr  netip.Addr
	ecs   bool
	cache map[netip.Prefix]kept // by the scope of the answer
	asked int
}

// kept is an answer in a cache.
type kept struct {
	addrs []netip.Addr
	until time.Time
}

// resolve returns the addresses for a player: of its family, in the order in which
// the scheduler gave them.
func (v *resolver) resolve(s *sched.Scheduler, now time.Time, player netip.Addr) []netip.Addr {
	client, family := netip.PrefixFrom(v.addr, v.addr.BitLen()), sched.FamilyOf(player)
	subnet := netip.PrefixFrom(player, 0)
	if v.ecs {
		bits := 24 // as RFC 7871 recommends, 11.1
		if player.Is6() {
			bits = 56
		}
		client = netip.PrefixFrom(player, bits).Masked()
		subnet = client
	}
	for n := subnet.Bits(); n >= 0; n-- {
		key := netip.PrefixFrom(player, n).Masked()
		if k, ok := v.cache[key]; ok && now.Before(k.until) {
			return k.addrs
		}
	}
	q := sched.Query{Client: client, Domain: domain, Families: family}
	var a sched.Answer
	s.Decide(now, &q, &a)
	v.asked++
	k := kept{until: now.Add(a.TTL)}
	for _, c := range a.Candidates[:a.Near] {
		if family == sched.V4 {
			k.addrs = append(k.addrs, c.Addr4)
		} else {
			k.addrs = append(k.addrs, c.Addr6)
		}
	}
	scope := 0 // the answer is for all who ask v
	if v.ecs {
		scope = a.Bits
	}
	v.cache[netip.PrefixFrom(player, scope).Masked()] = k
	return k.addrs
}
