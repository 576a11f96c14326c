package document

import "testing"

func TestDistance(t *testing.T) {
	f := func(a, b string, want int) {
		t.Helper()
		if got := distance(a, b); got != want {
			t.Errorf("distance(%q, %q) = %d, want %d", a, b, got, want)
		}
		if got := distance(b, a); got != want {
			t.Errorf("distance(%q, %q) = %d, want %d", b, a, got, want)
		}
	}
	f("", "", 0)
	f("grace", "grace", 0)
	f("grase", "grace", 1)
	f("garce", "grace", 1)
	f("grac", "grace", 1)
	f("", "abc", 3)
	f("kitten", "sitting", 3)
}
