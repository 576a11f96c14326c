package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"millrace/internal/faultnet"
	"millrace/tools/cluster"
	"millrace/tools/frames"
)

// deadFirst is how soon a stream must be there with two bad ones before the good one.
const deadFirst = 1500 * time.Millisecond

// elsewhere is an address of this machine on which nothing else of a drill listens, so
// that a port that was given up stays dead.
const elsewhere = "127.0.0.9"

// deadTree has edges whose pools begin with a dead port and a black hole.
func deadTree(r *rig) (cluster.Topology, error) {
	ln, err := net.Listen("tcp", elsewhere+":0")
	if err != nil {
		return cluster.Topology{}, err
	}
	r.dead = ln.Addr().String()
	ln.Close()
	hole, err := r.openHole()
	if err != nil {
		return cluster.Topology{}, err
	}
	pool := []string{"http://" + r.dead, "http://" + hole, "center"}
	if r.rnd.IntN(2) == 0 {
		pool[0], pool[1] = pool[1], pool[0]
	}
	t := cluster.Topology{Nodes: []cluster.Node{{ID: "center", Role: "center"}}}
	for i := range lanes {
		t.Nodes = append(t.Nodes, cluster.Node{ID: edge(i), Role: "edge", Upstreams: pool, Settings: map[string]string{"upstream.linger": lingers.String()}})
	}
	return t, nil
}

// openHole opens a port that leads nowhere and returns its address. By the seed, either
// it takes connections and says nothing, or it does not answer a SYN, because its queue
// is full.
func (r *rig) openHole() (string, error) {
	if r.rnd.IntN(2) == 0 {
		ln, err := net.Listen("tcp", elsewhere+":0")
		if err != nil {
			return "", err
		}
		r.closers = append(r.closers, ln)
		return ln.Addr().String(), nil
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	f := os.NewFile(uintptr(fd), "hole")
	r.closers = append(r.closers, f)
	if err := errors.Join(
		syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte(net.ParseIP(elsewhere).To4())}),
		syscall.Listen(fd, 0),
	); err != nil {
		return "", err
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		return "", err
	}
	addr := fmt.Sprintf("%s:%d", elsewhere, at.(*syscall.SockaddrInet4).Port)
	for range 8 {
		ctx, cancel := context.WithTimeout(r.ctx, 200*time.Millisecond)
		c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		cancel()
		if err != nil {
			return addr, nil
		}
		r.closers = append(r.closers, io.Closer(c))
	}
	return "", errors.New("a port with a queue of none took eight connections")
}

// lingers is short, so that each stream is alone when it is asked for.
const lingers = 100 * time.Millisecond

// streams is how many are asked for, one after another.
const streams = 8

// deadPool asks edges with a bad pool for streams, then takes the good one away, and
// then brings the dead port to life.
func deadPool(r *rig) error {
	cfg := frames.DefaultConfig()
	cfg.VideoKbps = 200
	for i := range streams {
		if _, err := r.publishAs("center", name(i), cfg, steady); err != nil {
			return err
		}
	}
	if err := r.wait(r.between(100*time.Millisecond, 2*time.Second)); err != nil {
		return err
	}
	began := time.Now()
	kept := make([]*viewer, lanes)
	for i := range streams { // the bad ones must not be asked for each of them
		var all []*viewer
		for at := range lanes {
			all = append(all, r.view(edge(at), name(i)))
		}
		if err := r.playing(all); err != nil {
			return err
		}
		for at, v := range all {
			if i == streams-1 {
				kept[at] = v
				continue
			}
			v.leave()
			x := r.sum(v, time.Time{})
			r.figure(map[bool]string{true: "ms until the first frame", false: "ms until the first frame, later"}[i == 0], x.First)
			if x.First > ms(r.limit(deadFirst)) {
				r.broke("%s at %s: first frame after %.0f ms, want %v", x.Stream, x.Node, x.First, deadFirst)
			}
		}
		if err := r.wait(200 * time.Millisecond); err != nil {
			return err
		}
	}
	r.observe()
	r.leftAlone("", began)
	return r.goodLost(kept)
}

// attempts is how often one node may ask a bad upstream within a few seconds: with
// pauses of 0.5, 1 and 2 s, and a quarter less, there are four.
const attempts = 4

// leftAlone counts how often the edges asked the dead port, for one stream or for any
// if that is empty, and wants the pauses between two attempts to grow.
func (r *rig) leftAlone(stream string, since time.Time) {
	for i := range lanes {
		var last time.Time
		var pause time.Duration
		n := 0
		for _, e := range r.happened("tried", edge(i), stream, since) {
			if e.To != "http://"+r.dead {
				continue
			}
			if n++; n > 1 {
				if d := e.At.Sub(last); d < pause {
					r.broke("%s asked the dead port again after %v, and before that after %v", e.Node,
						d.Round(time.Millisecond), pause.Round(time.Millisecond))
				} else {
					pause = d
				}
			}
			last = e.At
		}
		r.figure("attempts at the dead port, a node", float64(n))
		if n > attempts {
			r.broke("%s asked the dead port %d times in %v", edge(i), n, time.Since(since).Round(time.Second))
		}
	}
}

// goodLost cuts the links to the center. The edges have nowhere to go, until the dead
// port leads to the center.
func (r *rig) goodLost(kept []*viewer) error {
	if err := r.wait(r.between(2*lingers, time.Second)); err != nil {
		return err
	}
	fault := time.Now()
	for i := range lanes {
		if err := r.do("kill %s>center", edge(i)); err != nil {
			return err
		}
	}
	if err := r.wait(r.between(1500*time.Millisecond, 2500*time.Millisecond)); err != nil {
		return err
	}
	revived := time.Now()
	link, err := faultnet.ListenTCP(r.dead, r.c.Ports("center").HTTP, faultnet.Config{})
	if err != nil {
		return err
	}
	r.closers = append(r.closers, link)
	if err := r.wait(4 * time.Second); err != nil { // longer than the pause that has grown
		return err
	}
	r.observe()
	r.leftAlone(name(streams-1), fault)
	for _, v := range kept {
		v.leave()
		x := r.sumGaps(v, fault) // the log of the center may not go back so far
		v.mu.Lock()
		last := v.frames[len(v.frames)-1].at
		for _, f := range v.frames {
			if f.at.After(revived) {
				r.figure("ms from the revival until frames come", ms(f.at.Sub(revived)))
				break
			}
		}
		v.mu.Unlock()
		if last.Before(revived) {
			r.broke("%s did not find the revived upstream", x.Node)
		}
	}
	return nil
}
