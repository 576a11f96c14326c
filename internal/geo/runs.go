package geo

// run is a range of addresses with one value: from start up to where the next begins.
type run struct {
	start key
	value uint32
}

// runs cover all addresses: the first starts at zero, and neighbours differ in value.
//
//	0          1.2.0.0     1.2.3.0   1.2.4.0       1.3.0.0
//	|  unknown  |  telecom  | unicom |   telecom    |  unknown ...
type runs []run

// then appends that from start on the value is v. A start that is there already is
// overwritten; starts never go back.
func (r runs) then(start key, v uint32) runs {
	if n := len(r); n > 0 && r[n-1].start == start {
		r = r[:n-1]
	}
	if n := len(r); n > 0 && r[n-1].value == v {
		return r
	}
	return append(r, run{start, v})
}

// nested is a prefix with a value, as the range of its addresses. Two of them are
// disjoint, or one is inside the other.
type nested struct {
	from, to key
	value    uint32
}

// flatten brings sorted prefixes, each behind those that hold it, into runs. The
// innermost wins; outside all the value is unknown.
func flatten(prefixes []nested) runs {
	out := make(runs, 0, 2*len(prefixes)+1).then(key{}, unknown)
	var open []nested // those around the current address, the innermost last
	leave := func() {
		closed := open[len(open)-1]
		open = open[:len(open)-1]
		if closed.to == last {
			return
		}
		v := unknown
		if len(open) > 0 {
			v = open[len(open)-1].value
		}
		out = out.then(closed.to.next(), v)
	}
	for _, p := range prefixes {
		for len(open) > 0 && open[len(open)-1].to.less(p.from) {
			leave()
		}
		out = out.then(p.from, p.value)
		open = append(open, p)
	}
	for len(open) > 0 {
		leave()
	}
	return out
}

// overlay combines two lists of runs: each address gets f of its two values.
func overlay(over, under runs, f func(over, under uint32) uint32) runs {
	out := make(runs, 0, len(over)+len(under))
	for i, j := 0, 0; ; {
		start := over[i].start
		if start.less(under[j].start) {
			start = under[j].start
		}
		out = out.then(start, f(over[i].value, under[j].value))
		moreOver, moreUnder := i+1 < len(over), j+1 < len(under)
		switch {
		case !moreOver && !moreUnder:
			return out
		case !moreUnder:
			i++
		case !moreOver:
			j++
		default:
			a, b := over[i+1].start, under[j+1].start
			if !b.less(a) {
				i++
			}
			if !a.less(b) {
				j++
			}
		}
	}
}
