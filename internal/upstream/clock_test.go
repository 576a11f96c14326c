package upstream

import "testing"

// A name is shared only where times are kept, and never used again for another mapping.
func TestClockName(t *testing.T) {
	o := &Origin{opt: Options{Self: "here"}}
	var c clockName
	seen := map[string]bool{}
	f := func(from string, offset int64, changes, shared bool) {
		t.Helper()
		name, ok := c.changed(o, from, offset)
		if ok != changes || ok && (name == from) != shared {
			t.Errorf("%q + %d: %q, %v", from, offset, name, ok)
		}
		if ok && !shared {
			if seen[name] {
				t.Errorf("%q + %d: the name %q stood for another clock", from, offset, name)
			}
			seen[name] = true
		}
	}
	f("a", 0, true, true)
	f("a", 0, false, false)
	f("b", 0, true, true)
	f("b", 33, true, false)
	f("b", 33, false, false)
	f("b", 66, true, false)
	f("c", 66, true, false)
	f("c", 0, true, true)
	f("", 0, true, false)
	f("", 0, false, false)
}
