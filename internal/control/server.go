package control

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/auth"
)

// ServerConfig bounds what followers may cost.
type ServerConfig struct {
	// MaxWaiting is how many questions may wait for news of one kind. More are refused;
	// followers then ask another server. Each costs its connection and about 10 KiB.
	MaxWaiting int
	// MaxWait is how long a question may wait at most.
	MaxWait time.Duration
	// AnswersPerSecond is how fast those who waited are answered when there is news:
	// lower spreads the traffic, higher spreads the news.
	AnswersPerSecond int
	// MaxTransfers is how many followers may be sent a coverage or mmdb file at the
	// same time. More are refused, and come back.
	MaxTransfers int
	// MaxHeartbeats is how many heartbeats are worked on at the same time: about twice
	// the processors. More wait their turn for a moment, and are then refused; the nodes
	// come back, or tell another router.
	MaxHeartbeats int
}

// DefaultServerConfig is for ten thousand followers.
func DefaultServerConfig() ServerConfig {
	return ServerConfig{MaxWaiting: 20_000, MaxWait: 30 * time.Second, AnswersPerSecond: 2000, MaxTransfers: 32, MaxHeartbeats: 8}
}

// Validate checks every value. Its errors name the key and the accepted range.
func (c ServerConfig) Validate() error {
	var errs []error
	for _, n := range []struct {
		key              string
		value, low, high int
	}{
		{"max_waiting", c.MaxWaiting, 1, 1_000_000},
		{"answers_per_second", c.AnswersPerSecond, 1, 1_000_000},
		{"max_transfers", c.MaxTransfers, 1, 10_000},
		{"max_heartbeats", c.MaxHeartbeats, 1, 1000},
	} {
		if n.value < n.low || n.value > n.high {
			errs = append(errs, fmt.Errorf("%s is %d: use %d to %d", n.key, n.value, n.low, n.high))
		}
	}
	if c.MaxWait < time.Second || c.MaxWait > 5*time.Minute {
		errs = append(errs, fmt.Errorf("max_wait is %v: use 1s to 5m", c.MaxWait))
	}
	return errors.Join(errs...)
}

// Server answers followers. It does not listen: [Server.Handle] is called by whoever
// does. All methods may be called from any goroutine.
type Server struct {
	// Fixed at construction.
	cfg     ServerConfig
	cluster *auth.Cluster
	log     *slog.Logger
	ended   chan struct{} // closed by Close

	snapshots        *bulletin
	reports, carried *bulletin // without the names of streams, and with
	orders           *board
	gate             *gate
	unpacker         *unpacker

	// Safe from any goroutine.
	fleet     atomic.Pointer[Backend]
	blobs     atomic.Pointer[map[string]*payload] // by sum
	transfers atomic.Int64
	answered  atomic.Uint64
	heard     atomic.Uint64 // heartbeats that were taken
	routed    atomic.Uint64 // paths that were told
	refused   [refusals]atomic.Uint64
	strangers strangers

	close sync.Once
}

// NewServer returns a Server that has nothing yet.
func NewServer(cfg ServerConfig, cluster *auth.Cluster, log *slog.Logger) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, cluster: cluster, log: log, ended: make(chan struct{}),
		snapshots: newBulletin(cfg.AnswersPerSecond),
		reports:   newBulletin(cfg.AnswersPerSecond), carried: newBulletin(cfg.AnswersPerSecond),
		orders: newBoard(cfg.AnswersPerSecond), gate: newGate(cfg.MaxHeartbeats), unpacker: newUnpacker(),
	}
	s.blobs.Store(&map[string]*payload{})
	return s, nil
}

// Bundle offers b to followers, in place of the one before. It keeps the files of b in
// memory.
func (s *Server) Bundle(b *Bundle) {
	before, blobs := *s.blobs.Load(), map[string]*payload{}
	for _, blob := range b.blobs() {
		p := before[blob.Sum]
		if p == nil {
			data, err := blob.Data()
			if err != nil {
				s.log.Error("new snapshot not offered to followers", "version", b.Version, "err", err)
				return
			}
			p = newPayload(blob.Sum, bytesOf(data))
		}
		blobs[blob.Sum] = p
	}
	s.blobs.Store(&blobs)
	s.snapshots.publish(newPayload(b.Version.Token, bytesOf(b.document)))
}

// Report offers r to followers, in place of the one before. It is written out only
// when somebody asks for it.
func (s *Server) Report(r *Report) {
	s.reports.publish(newPayload(r.token(), func() []byte { return r.encode(false) }))
	s.carried.publish(newPayload(r.token(), func() []byte { return r.encode(true) }))
}

// Close answers whoever waits, with no news, and refuses who comes.
func (s *Server) Close() error {
	s.close.Do(func() { close(s.ended) })
	return nil
}

func (s *Server) closed() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// ServerStats is what a server has done, and is doing.
type ServerStats struct {
	Waiting    int               `json:"waiting"`    // questions
	Transfers  int               `json:"transfers"`  // files being sent
	Answered   uint64            `json:"answered"`   // questions of all kinds
	Heartbeats uint64            `json:"heartbeats"` // that were taken
	Paths      uint64            `json:"paths"`      // that were told
	Queued     int               `json:"queued"`     // heartbeats that wait for their turn
	Stretch    float64           `json:"stretch"`    // by how much nodes are asked to speak less often; 1: not
	Refused    map[string]uint64 `json:"refused"`    // by reason
}

// Stats returns the figures.
func (s *Server) Stats() ServerStats {
	out := ServerStats{
		Waiting:   s.snapshots.waiters() + s.reports.waiters() + s.carried.waiters() + s.orders.waiters(),
		Transfers: int(s.transfers.Load()),
		Answered:  s.answered.Load(), Heartbeats: s.heard.Load(), Paths: s.routed.Load(),
		Queued: int(s.gate.waiting.Load()), Stretch: s.gate.stretch(time.Now()), Refused: map[string]uint64{},
	}
	for _, r := range Refusals() {
		out.Refused[r.String()] = s.refused[r].Load()
	}
	return out
}
