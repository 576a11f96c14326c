package fleet

import (
	"testing"

	"millrace/internal/plan"
)

// TestWeightOf: a center that drains gets publishes last, one that nobody says anything
// of gets its share.
func TestWeightOf(t *testing.T) {
	p := &plan.Plan{Members: map[string][]plan.Peer{
		"a": {{ID: "a", Weight: 2}, {ID: "b"}},
		"b": {{ID: "a", Weight: 2}, {ID: "b"}},
	}}
	for center, want := range map[string]float64{"a": 2, "b": 0, "alone": 1} {
		if got := weightOf(p, center); got != want {
			t.Errorf("%s: %v, want %v", center, got, want)
		}
	}
}
