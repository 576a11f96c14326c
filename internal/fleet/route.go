package fleet

import (
	"sync"

	"millrace/internal/control"
	"millrace/internal/plan"
	"millrace/internal/stream"
)

// answers are used again, so that a path costs no more than its answer.
var answers = sync.Pool{New: func() any { return new(plan.PathAnswer) }}

// Path tells where a node should pull a stream from.
func (f *Fleet) Path(node string, s stream.Name) control.Route {
	f.counts.paths.Add(1)
	fr := f.frame.Load()
	if fr == nil {
		return control.Route{Stream: s, Reason: plan.NoUpstream.String(), Choices: []control.Target{}}
	}
	a := answers.Get().(*plan.PathAnswer)
	defer answers.Put(a)
	fr.view.Path(node, s, a)
	r := control.Route{Version: a.Version, Stream: s, Source: a.Source, Reason: a.Reason.String(), Choices: make([]control.Target, 0, len(a.Choices))}
	for i := range a.Choices {
		if n := fr.node(a.Choices[i].Upstream); n != nil && n.identity.URL != "" {
			r.Choices = append(r.Choices, control.Target{Node: n.identity.ID, URL: n.identity.URL})
		}
	}
	return r
}

// ExplainPath tells where a node should pull a stream from, and why.
func (f *Fleet) ExplainPath(node string, s stream.Name) plan.PathExplanation {
	fr := f.frame.Load()
	if fr == nil {
		return plan.PathExplanation{Answer: plan.PathAnswer{Node: node, Stream: s, Reason: plan.NoUpstream, Choices: []plan.PathChoice{}}, Ways: []plan.Way{}}
	}
	return fr.view.ExplainPath(node, s)
}
