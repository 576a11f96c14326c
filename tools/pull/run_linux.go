package pull

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"millrace/tools/procstat"
)

// Run plays until the measuring time is over or ctx ends, and reports. The error
// says that it could not be measured; faults of the stream are in the report.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	targets, err := cfg.targets()
	if err != nil {
		return nil, err
	}
	if err := allowDescriptors(cfg.Viewers + 64); err != nil {
		return nil, err
	}
	servers, err := before(cfg.PIDs)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	workers := make([]*worker, cfg.Workers)
	start := time.Now()
	var joins time.Duration
	if cfg.Rate > 0 {
		joins = time.Duration(float64(cfg.Viewers) / cfg.Rate * 1e9)
	}
	from := start.Add(joins + cfg.Warmup)
	to := from.Add(cfg.Duration)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for i := range workers {
		w, err := newWorker(cfg, targets, i, start, from, to)
		if err != nil {
			return nil, err
		}
		workers[i] = w
		run := w.run
		if cfg.Trunk > 0 {
			run = w.runTrunks
		}
		wg.Go(func() { run(ctx) })
	}
	wait(ctx, time.Until(from))
	m := measure(cfg.PIDs, workers)
	wait(ctx, time.Until(to))
	err = m.end(servers, workers, cfg.Viewers)
	cancel()
	wg.Wait()
	r := report(cfg, workers)
	r.Seconds, r.Bytes, r.Servers, r.OwnCPU = m.seconds, m.bytes, servers, m.own.Seconds()
	return r, err
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// allowDescriptors raises the limit of open files to what the viewers need.
func allowDescriptors(n int) error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return err
	}
	if l.Cur >= uint64(n) {
		return nil
	}
	l.Cur = l.Max
	if l.Max < uint64(n) {
		return fmt.Errorf("%d viewers need %d open files, the limit is %d", n-64, n, l.Max)
	}
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &l)
}

func before(pids []int) ([]Server, error) {
	out := make([]Server, len(pids))
	for i, pid := range pids {
		m, err := procstat.ReadMemory(pid)
		if err != nil {
			return nil, fmt.Errorf("pid %d: %w", pid, err)
		}
		out[i] = Server{PID: pid, RSSBefore: m.RSS}
	}
	return out, nil
}

// measurement is the measuring time: what was there at its beginning, and then the difference.
type measurement struct {
	begin   time.Time
	cpu     []time.Duration
	own     time.Duration
	bytes   uint64
	seconds float64
}

func measure(pids []int, workers []*worker) *measurement {
	m := &measurement{begin: time.Now()}
	for _, pid := range pids {
		c, _ := procstat.CPU(pid) // a process that is gone is told at the end
		m.cpu = append(m.cpu, c)
	}
	m.own, _ = procstat.CPU(os.Getpid())
	for _, w := range workers {
		m.bytes += w.bytes.Load()
	}
	return m
}

func (m *measurement) end(servers []Server, workers []*worker, viewers int) error {
	was := m.bytes
	m.bytes = 0
	for _, w := range workers {
		m.bytes += w.bytes.Load()
	}
	m.bytes -= was
	m.seconds = time.Since(m.begin).Seconds()
	own, err := procstat.CPU(os.Getpid())
	if err != nil {
		return err
	}
	m.own = own - m.own
	for i := range servers {
		s := &servers[i]
		c, err := procstat.CPU(s.PID)
		if err != nil {
			return fmt.Errorf("pid %d: %w", s.PID, err)
		}
		mem, err := procstat.ReadMemory(s.PID)
		if err != nil {
			return fmt.Errorf("pid %d: %w", s.PID, err)
		}
		s.CPU = (c - m.cpu[i]).Seconds()
		s.RSSAfter, s.PSSAfter = mem.RSS, mem.PSS
		s.RSSPerViewer = (mem.RSS - s.RSSBefore) / int64(viewers)
		if m.bytes > 0 {
			s.CPUPerGB = s.CPU / (float64(m.bytes) / 1e9)
		}
	}
	return nil
}
