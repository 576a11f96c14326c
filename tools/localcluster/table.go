package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"millrace/tools/cluster"
)

// table returns a Snapshot as lines: nodes with their streams, copies, links that
// carry something or are broken.
func table(s cluster.Snapshot) []string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tROLE\tDC\tSTATE\tSTREAM\tFROM\tPATH\tDELAY\tVIEWERS\tNODES\tKBIT/S\tSWITCHES\tHTTP")
	for _, n := range s.Nodes {
		for i, row := range rows(n) {
			head := "\t\t\t"
			tail := "\t"
			if i == 0 {
				head = strings.Join([]string{n.ID, n.Role, n.Datacenter, state(n)}, "\t")
				tail = strconv.Itoa(n.Switches) + "\t" + n.Ports.HTTP
			}
			fmt.Fprintln(w, head+"\t"+row+"\t"+tail)
		}
	}
	w.Flush()
	fmt.Fprintln(&b)
	copies(&b, s.Copies)
	publishers(&b, s.Publishers)
	links(&b, s.Links)
	out := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	for i := range out {
		out[i] = strings.TrimRight(out[i], " ")
	}
	return out
}

// shape returns what a Snapshot shows without the figures that never stand still.
func shape(s cluster.Snapshot) string {
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		s.Nodes[i].Streams = slices.Clone(s.Nodes[i].Streams)
		for k := range s.Nodes[i].Streams {
			s.Nodes[i].Streams[k].Delay, s.Nodes[i].Streams[k].Kbps = 0, 0
		}
	}
	s.Links = slices.DeleteFunc(slices.Clone(s.Links), func(l cluster.LinkState) bool { return l.Trouble == "" })
	for i := range s.Links {
		s.Links[i].Open, s.Links[i].Kbps = 0, 0
	}
	return strings.Join(table(s), "\n")
}

// watch returns the page to open: the first stream at the first edge that runs.
func watch(s cluster.Snapshot) string {
	for _, n := range s.Nodes {
		if n.Role == "edge" && n.State == cluster.Running && len(s.Publishers) > 0 {
			return "http://" + n.Ports.HTTP + "/watch/" + s.Publishers[0].Stream
		}
	}
	return ""
}

func state(n cluster.NodeState) string {
	if n.Silent {
		return "no answer"
	}
	return string(n.State)
}

// rows returns the columns STREAM to KBIT/S, a line for each stream.
func rows(n cluster.NodeState) (out []string) {
	for _, s := range n.Streams {
		from := strings.Join(append([]string{s.From}, s.Beside...), " + ")
		if s.State != "live" {
			from = strings.TrimSpace(from + " (" + s.State + ")")
		}
		delay, path := "", ""
		if len(s.Path) > 0 {
			delay, path = ms(s.Delay), strings.Join(s.Path, " < ")
		}
		out = append(out, strings.Join([]string{s.Name, from, path, delay, strconv.Itoa(s.Viewers), strconv.Itoa(s.Nodes), strconv.FormatInt(s.Kbps, 10)}, "\t"))
	}
	if len(out) == 0 {
		out = []string{"\t\t\t\t\t\t"}
	}
	return out
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond)) }

func copies(b *strings.Builder, list []cluster.Copies) {
	for i, c := range list {
		if i == 0 || list[i-1].Stream != c.Stream {
			if i > 0 {
				b.WriteByte('\n')
			}
			fmt.Fprintf(b, "copies of %s:", c.Stream)
		}
		fmt.Fprintf(b, "  %s %d (nodes: %d)", c.Datacenter, c.Copies, c.Nodes)
	}
	if len(list) > 0 {
		b.WriteByte('\n')
	}
}

func publishers(b *strings.Builder, list []cluster.PublishState) {
	for _, p := range list {
		switch {
		case p.At == "" && p.Error != "":
			fmt.Fprintf(b, "%s is not published: %s\n", p.Stream, p.Error)
		case p.At == "":
			fmt.Fprintf(b, "%s is not published yet\n", p.Stream)
		}
	}
}

func links(b *strings.Builder, list []cluster.LinkState) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	defer w.Flush()
	for _, l := range list {
		if l.Trouble == "" && l.Kbps < 8 { // less is members asking whether the others live
			continue
		}
		fmt.Fprintf(w, "link %v\t%d open\t%d kbit/s\t%s\n", l.Pair, l.Open, l.Kbps, strings.ToUpper(l.Trouble))
	}
}

// event returns an Event as a line.
func event(e cluster.Event) string {
	out := e.At.Local().Format("15:04:05.000") + "  " + e.Node + "  " + e.Kind
	if e.Stream != "" {
		out += " " + e.Stream
	}
	if e.From != "" {
		out += " from " + e.From
	}
	if e.To != "" {
		out += " to " + e.To
	}
	if e.Reason != "" {
		out += " (" + e.Reason + ")"
	}
	if e.Detail != "" {
		out += ": " + e.Detail
	}
	return out
}
