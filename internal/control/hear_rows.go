package control

import (
	"encoding/json"
	"time"

	"millrace/internal/plan"
	"millrace/internal/stream"
)

// read reads c as it is written.
func (c *Carrying) read(s *scanner) {
	for s.enter('{'); s.more('}'); {
		switch string(s.key()) {
		case "based":
			c.Based = natural(s)
		case "set":
			c.readSet(s)
		case "gone":
			for s.enter('['); s.more(']'); {
				if len(c.Gone) == MaxCarried {
					s.stop(tooManyStreams)
					return
				}
				c.Gone = append(c.Gone, stream.Name(s.text()))
			}
		default:
			passOver(s)
		}
	}
}

func (c *Carrying) readSet(s *scanner) {
	if c.Set != nil {
		s.fail("set is there twice")
		return
	}
	// A row takes about a hundred bytes of text, and as many in memory.
	c.Set = make([]Carried, 0, min((len(s.b)-s.at)/90+1, MaxCarried))
	var nodes few
	keys := keys{known: make([][]byte, 0, maxKnown)}
	for s.enter('['); s.more(']'); {
		if len(c.Set) == MaxCarried {
			s.stop(tooManyStreams)
			return
		}
		c.Set = append(c.Set, Carried{})
		row := &c.Set[len(c.Set)-1]
		for s.enter('{'); s.more('}'); {
			switch string(keys.read(s)) {
			case "name":
				row.Name = stream.Name(s.text())
			case "source":
				row.Source = s.truth()
			case "epoch":
				row.Epoch = s.whole()
			case "from":
				row.From = nodes.text(s)
			case "bitrate":
				row.Bitrate = s.whole()
			case "viewers":
				row.Viewers = int(s.whole())
			case "delay":
				row.Delay = s.float()
			default:
				passOver(s)
			}
		}
	}
}

var tooManyStreams = deny(TooBig, "the heartbeat has more than %d streams", MaxCarried)

// natural returns a number that is not below 0.
func natural(s *scanner) uint64 {
	n := s.whole()
	if n < 0 {
		s.fail("%d is below 0", n)
	}
	return uint64(max(n, 0))
}

// passOver goes behind a value that this version does not know.
func passOver(s *scanner) {
	if text := s.skip(); s.err == nil && !json.Valid(text) {
		s.fail("%.40q is no JSON", text)
	}
}

// readSamples reads samples as they are written.
func readSamples(s *scanner) []plan.Sample {
	out := make([]plan.Sample, 0, min((len(s.b)-s.at)/150+1, plan.MaxSamples))
	var nodes few
	keys := keys{known: make([][]byte, 0, maxKnown)}
	for s.enter('['); s.more(']'); {
		if len(out) == plan.MaxSamples {
			s.stop(tooManySamples)
			return nil
		}
		out = append(out, plan.Sample{})
		row := &out[len(out)-1]
		for s.enter('{'); s.more('}'); {
			switch string(keys.read(s)) {
			case "from":
				row.From = nodes.text(s)
			case "to":
				row.To = nodes.text(s)
			case "at":
				if err := row.At.UnmarshalText(s.quoted()); err != nil {
					s.fail("%w", err)
				}
			case "connect_ns":
				row.Connect = time.Duration(s.whole())
			case "rtt_ns":
				row.RTT = time.Duration(s.whole())
			case "delay_ns":
				row.Delay = time.Duration(s.whole())
			case "first_frame_ns":
				row.FirstFrame = time.Duration(s.whole())
			case "loss":
				row.Loss = s.float()
			case "retransmits":
				row.Retransmits = s.float()
			case "stalls":
				row.Stalls = s.float()
			case "switches":
				row.Switches = s.float()
			case "rate":
				row.Rate = s.whole()
			case "ok":
				row.OK = s.truth()
			case "pulled":
				row.Pulled = s.truth()
			case "probes":
				row.Probes = int(s.whole())
			default:
				passOver(s)
			}
		}
	}
	return out
}

var tooManySamples = deny(TooBig, "the heartbeat has more than %d samples", plan.MaxSamples)
