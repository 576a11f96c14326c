package drill

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"millrace/tools/cluster"
	"millrace/tools/frames"
)

// crowd is how many streams there are, what each is, and what that makes with framing.
type crowd struct {
	streams int
	cfg     frames.Config
	kbps    int
}

// hundred fits into one trunk.
func hundred() crowd {
	cfg := frames.DefaultConfig()
	cfg.VideoKbps, cfg.FPS, cfg.Width, cfg.Height = 150, 15, 320, 180
	return crowd{100, cfg, 225}
}

// hundreds take a few trunks. The streams are thin, or two cores would not carry them.
func hundreds() crowd { return crowd{300, thin(), 25} }

// A short run has few streams and troubles.
const shortCrowd, shortTroubles = 20, 3

// trunkTree is a center, two relays and an edge.
func trunkTree(*rig) (cluster.Topology, error) {
	relays := []string{"a", "b"}
	t := cluster.Topology{ClusterKey: key, Nodes: []cluster.Node{{ID: "center", Role: "center"}}}
	for _, id := range relays {
		t.Nodes = append(t.Nodes, cluster.Node{ID: id, Role: "relay", Upstreams: []string{"center"}})
	}
	t.Nodes = append(t.Nodes, cluster.Node{ID: edge(0), Role: "edge", Upstreams: relays})
	return t, nil
}

// trouble is what happens to the relay that most streams come from, R, or to a trunk to
// it or from it. RATE is 60 % of what all streams have together.
type trouble struct{ breaks, heals string }

var troubles = []trouble{
	{"kill R", "restart R"},
	{"freeze R", "heal R"},
	{"kill edge-1>R", "heal edge-1>R"},
	{"restart edge-1>R", ""}, // reset, and that is all
	{"half-open edge-1>R", "heal edge-1>R"},
	{"freeze edge-1>R", "heal edge-1>R"},
	{"slow edge-1>R RATE", "heal edge-1>R"},
	{"kill R>center", "heal R>center"},
	{"freeze R>center", "heal R>center"},
	{"slow R>center RATE", "heal R>center"},
}

// trunks has many streams go over one trunk, or a few, whose upstream is killed, frozen,
// reset and slowed in an order that the seed decides.
func trunks(of crowd) func(*rig) error {
	return func(r *rig) error {
		of, todo := of, slices.Clone(troubles)
		r.rnd.Shuffle(len(todo), func(i, j int) { todo[i], todo[j] = todo[j], todo[i] })
		if r.opt.Short {
			of.streams, todo = shortCrowd, todo[:shortTroubles]
		}
		viewers, err := r.openCrowd(of)
		if err != nil {
			return err
		}
		began := time.Now()
		lost := map[string]uint64{}
		for _, t := range todo {
			if err := r.suffer(t, of, lost); err != nil {
				return err
			}
		}
		if err := r.wait(settle); err != nil {
			return err
		}
		for _, n := range r.top.Nodes {
			r.skips(lost, n.ID)
		}
		for _, v := range viewers {
			v.leave()
			r.sum(v, began)
		}
		for what, n := range lost { // on trunks that were given up too: only some tell of frames that are missing
			r.figure("tags skipped by "+what, float64(n))
		}
		return nil
	}
}

// openCrowd publishes streams, and starts a viewer of each.
func (r *rig) openCrowd(of crowd) (viewers []*viewer, err error) {
	for i := range of.streams {
		if _, err := r.publishAs("center", name(i), of.cfg, steady); err != nil {
			return nil, err
		}
		if err := r.wait(r.between(0, 20*time.Millisecond)); err != nil { // where GOPs begin
			return nil, err
		}
	}
	for i := range of.streams {
		v := r.view(edge(0), name(i))
		viewers = append(viewers, v)
		if err := r.playing([]*viewer{v}); err != nil {
			return nil, err
		}
	}
	return viewers, r.wait(calibration)
}

// suffer has a trouble come and go.
func (r *rig) suffer(t trouble, of crowd, lost map[string]uint64) error {
	words := strings.NewReplacer("RATE", fmt.Sprint(of.streams*of.kbps*6/10), "R", r.favourite())
	if t.breaks == "kill R" {
		r.skips(lost, words.Replace("R")) // it takes its figures with it
	}
	if err := r.do("%s", words.Replace(t.breaks)); err != nil {
		return err
	}
	if err := r.wait(r.between(2*time.Second, 4*time.Second)); err != nil {
		return err
	}
	if t.heals != "" {
		if err := r.do("%s", words.Replace(t.heals)); err != nil {
			return err
		}
	}
	return r.wait(r.between(500*time.Millisecond, 3*time.Second))
}

// favourite returns the relay that most streams come from.
func (r *rig) favourite() string {
	count := map[string]int{}
	for _, n := range r.observe().Nodes {
		if n.ID != edge(0) {
			continue
		}
		for _, x := range n.Streams {
			count[x.From]++
		}
	}
	if count["b"] > count["a"] {
		return "b"
	}
	return "a"
}

// skips adds to sum what a node has left out for readers that were too slow, by reason:
// so it is known whether a frame that is missing was sent at all.
func (r *rig) skips(sum map[string]uint64, node string) {
	page, err := r.page(node, "/metrics")
	if err != nil {
		r.broke("%s does not tell what it has left out: %v", node, err)
	}
	for line := range strings.Lines(page) {
		var reason string
		var count uint64
		if _, err := fmt.Sscanf(line, "millrace_session_skipped_tags_total{reason=%q} %d", &reason, &count); err == nil {
			sum[node+", "+reason] += count
		}
	}
}

// page returns a page of a node's admin listener.
func (r *rig) page(node, path string) (string, error) {
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.c.Ports(node).Admin+path, nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return string(b), err
}
