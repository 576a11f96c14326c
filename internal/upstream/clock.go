package upstream

import (
	"strconv"
	"time"
)

// clockName is what the clock of a stream is called that comes through a splicer.
// Where a frame keeps its time it is on the clock of where it comes from, and so is
// every other node that gives it the same time. Where it does not, this node's clock
// is one of its own: another node may have mapped the same frame to another time.
type clockName struct {
	from   string // the clock that the frames come on; empty if it has no name
	offset int64  // what is added to it
	own    string
	told   string
}

// changed takes in what the splicer adds to the times of the clock from, and returns
// the name if it is another one than before.
func (c *clockName) changed(o *Origin, from string, offset int64) (string, bool) {
	if c.told != "" && from == c.from && offset == c.offset {
		return "", false
	}
	if from != c.from || offset != c.offset || c.own == "" {
		c.own = o.newClock()
	}
	c.from, c.offset = from, offset
	name := c.own
	if from != "" && offset == 0 {
		name = from
	}
	if name == c.told {
		return "", false
	}
	c.told = name
	return name, true
}

// newClock names a clock that begins on this node.
func (o *Origin) newClock() string {
	return o.opt.Self + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
}
