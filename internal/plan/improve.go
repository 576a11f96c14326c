package plan

// eject makes room for k at one of its candidates, by moving one other node for which
// that costs least, and less than most. It returns the candidate.
func (a *assignment) eject(k int, most float64) (candidate, bool) {
	who, to, from := int32(none), candidate{}, candidate{}
	demand := a.demand(k)
	for _, c := range a.choices[k] {
		if a.tries <= 0 {
			break
		}
		need := demand - a.room(c.up)
		if need <= 0 {
			continue // nobody has to leave
		}
		mine := a.cost(&c, demand)
		for _, other := range a.members[c.up] {
			d := a.demand(int(other))
			if int(other) == k || d < need || a.state[other] == pinned || a.state[other] == over {
				continue
			}
			a.tries--
			at, cost := a.best(a.choices[other], d, c.up)
			if at < 0 {
				continue
			}
			loss := cost - a.cost(&a.at[other], 0)
			if a.state[other] == kept {
				loss += a.threshold(a.cost(&a.at[other], 0))
			}
			if mine+loss < most {
				who, to, from, most = other, a.choices[other][at], c, mine+loss
			}
		}
	}
	if who == none {
		return candidate{}, false
	}
	a.move(int(who), to)
	return from, true
}

// improve moves nodes to where they cost less, or exchanges two. It reports whether it did.
func (a *assignment) improve() (changed bool) {
	for k := range a.who {
		c := a.at[k]
		if c.up == none || a.state[k] == pinned || a.state[k] == over {
			continue
		}
		cost := a.cost(&c, 0)
		margin := slight
		if a.state[k] == kept {
			margin = a.threshold(cost)
		}
		if len(a.choices[k]) == 0 || a.choices[k][0].fixed >= cost-margin {
			continue
		}
		if at, other := a.best(a.choices[k], a.demand(k), c.up); at >= 0 && other < cost-margin {
			a.move(k, a.choices[k][at])
			changed = true
			continue
		}
		state := a.state[k]
		a.lift(k)
		if to, ok := a.eject(k, cost-margin); ok {
			a.put(k, to, movable)
			changed = true
			continue
		}
		a.put(k, c, state)
	}
	return changed
}

// rescue places those that had no room where there is some after all. Each that leaves
// may make room for another one, so that it goes on until nobody moves.
func (a *assignment) rescue() {
	for again := true; again; {
		again = false
		for k := range a.who {
			if a.state[k] != over && a.at[k].up != none {
				continue
			}
			if a.at[k].up != none && a.room(a.at[k].up) >= 0 {
				a.state[k] = movable
				again = true
				continue
			}
			if c, ok := a.roomy(k); ok {
				if a.at[k].up != none {
					a.lift(k)
				}
				a.put(k, c, movable)
				again = true
			}
		}
	}
}
