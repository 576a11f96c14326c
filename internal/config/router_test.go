package config

import (
	"reflect"
	"testing"

	"millrace/internal/fleet"
)

// TestMind: by default a fleet is minded as its package has it, with nodes asking for
// paths, and the settings are what it is minded by.
func TestMind(t *testing.T) {
	r := DefaultRouter()
	want := fleet.DefaultConfig()
	want.Router, want.Program = "router-1", "v1"
	if got := r.Mind("router-1", "v1"); !reflect.DeepEqual(got, want) {
		t.Errorf("minded by %+v, want %+v", got, want)
	}
	r.Plan.Paths = false
	if r.Mind("router-1", "v1").Paths {
		t.Error("plan.paths does not count")
	}
}
