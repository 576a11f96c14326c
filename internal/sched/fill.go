package sched

// fillUp adds the cheapest edges outside the window, where those within it are too few.
func (s *search) fillUp(allowed *nodeSet) {
	t := s.table
	for _, c := range s.order {
		if s.row[c].least()-s.bonus > s.worst() {
			break
		}
		static := s.static(c)
		for i := t.off[c]; i < t.off[c+1]; i++ {
			cost, n := static+t.cost[i], t.node[i]
			if cost-s.bonus > s.worst() {
				break // so are the others of the cell
			}
			if cost -= s.gain(n); cost > s.window && (allowed == nil || allowed.has(n)) {
				s.fill(n, cost)
			}
		}
	}
}

// worst returns up to which cost an edge is still wanted.
func (s *search) worst() float32 {
	if s.found < s.want {
		return inf
	}
	return float32(s.top[s.found-1].number)
}

// fill notes an edge outside the window, if it is among the cheapest. Those follow the
// ones within it, by cost; ties by id.
func (s *search) fill(n int32, cost float32) {
	if s.found == s.want {
		if !before(float64(cost), n, s.top[s.found-1]) {
			return
		}
		s.found--
	}
	i := s.found
	for ; i > s.shared && before(float64(cost), n, s.top[i-1]); i-- {
		s.top[i] = s.top[i-1]
	}
	s.top[i] = drawn{n, float64(cost)}
	s.found++
}
