package config

import (
	"log/slog"

	"millrace/internal/run"
)

// Reading is what came of reading the settings again.
type Reading[R Root] struct {
	Loaded[R]
	Err error
}

// Read reads the settings of a program that runs and has check look at them. A file may
// lie on a disk that does not answer, so this is not done where signals are waited for.
func Read[R Root](def R, src Sources, check func(Loaded[R]) error) Reading[R] {
	loaded, err := Reload(def, src)
	if err == nil {
		err = check(loaded)
	}
	return Reading[R]{loaded, err}
}

// Renewal puts settings in force that were read again while a program runs. Nothing in
// it is nil.
type Renewal[R Root] struct {
	Log *slog.Logger
	// Descriptors is how many are allowed, and Fit makes the settings fit that.
	Descriptors int
	Fit         func(l Loaded[R], descriptors int) (R, []run.Lowered, error)
	// Refuse says what is wrong with settings that are valid: what only a component
	// knows. Where it finds nothing, those of that component are in force.
	Refuse func(R) error
	// Apply puts the settings in force in all other components.
	Apply func(R) error
}

// Renew puts next in force, as far as that can be done while the program runs, and tells
// what has changed. cfg and lowered are what is in force. If anything is wrong with
// next, all of it stays as it is.
func (n Renewal[R]) Renew(next Reading[R], cfg *R, lowered *[]run.Lowered) {
	var now R
	var low []run.Lowered
	err := next.Err
	if err == nil {
		now, low, err = n.Fit(next.Loaded, n.Descriptors)
	}
	if err == nil {
		err = n.Refuse(now)
	}
	if err != nil {
		n.Log.Error("reload refused, the old settings stay", "err", err)
		return
	}
	changes := Changes(*cfg, now)
	now = Keep(*cfg, now)
	if err := n.Apply(now); err != nil {
		// Everything was validated, so this is a fault of ours.
		n.Log.Error("reload is not complete", "err", err)
	}
	*cfg = now
	inForce := Tell(n.Log, changes)
	run.TellLowered(n.Log, low, *lowered, n.Descriptors)
	*lowered = low
	n.Log.Info("reloaded", "changes", inForce, "need_restart", len(changes)-inForce)
}

// Capacity is the setting of a key, of which each takes a descriptor.
func (l Loaded[R]) Capacity(key string, value *int) run.Capacity {
	return run.Capacity{Key: key, Value: value, Asked: l.Origin(key).String()}
}
