package drill

import "time"

// burst is how much media a bursty publisher sends at once.
const burst = 3 * time.Second

// bursts collects the frames of three seconds and sends them together.
func bursts(due time.Duration) time.Duration { return due.Truncate(burst) + burst }

// burstySource: media comes at once, and then nothing for a while.
func burstySource(r *rig) error {
	watch := 18 * time.Second
	if r.opt.Short {
		watch = 7 * time.Second
	}
	all, err := r.openLanes(bursts)
	if err != nil {
		return err
	}
	if err := r.wait(watch); err != nil {
		return err
	}
	r.observe()
	for _, l := range all {
		l.v.leave()
		l.fault = l.v.frames[0].at
		r.sum(l.v, time.Time{})
		r.stayed(l, false)
	}
	return nil
}

// slowSource: the publisher itself falls to sixty percent of real time.
func slowSource(r *rig) error {
	onset := r.between(4*time.Second, 6*time.Second) // all lanes play well before
	began := time.Now()
	all, err := r.openLanes(func(due time.Duration) time.Duration {
		if due < onset {
			return due
		}
		return onset + (due-onset)*10/6
	})
	if err != nil {
		return err
	}
	for i, l := range all {
		l.fault = r.sources[i].began.Add(onset)
	}
	watch := 14 * time.Second
	if r.opt.Short {
		watch = 7 * time.Second
	}
	if err := r.wait(onset - time.Since(began) + watch); err != nil {
		return err
	}
	r.observe()
	for _, l := range all {
		l.v.leave()
		r.sum(l.v, l.fault)
		r.stayed(l, true)
	}
	return nil
}
