package failover

import (
	"testing"
	"time"

	"millrace/internal/flv"
)

// A publisher that comes back goes on where the clock stood, so the whole pause is
// lateness: his, which he says, and not that of the connection.
func TestRenewedHealth(t *testing.T) {
	verdict := func(renew bool) Verdict {
		cfg := DefaultConfig()
		now := time.Unix(1_800_000_000, 0)
		h := NewHealth(&cfg, now)
		dts := int64(0)
		play := func(n int) {
			for range n {
				h.Came(now, flv.New(flv.Video, dts, []byte{0x17, 1, 0, 0, 0, 1}))
				h.Link(now, now, false)
				now, dts = now.Add(40*time.Millisecond), dts+40
			}
		}
		play(200)
		now = now.Add(time.Second)
		if renew {
			h.Renew()
		}
		play(25)
		return h.Verdict(now)
	}
	if v := verdict(true); v != Good && v != Starting {
		t.Errorf("after another publish began it is %v", v)
	}
	if v := verdict(false); v != Slow {
		t.Errorf("after a pause of a second without a word it is %v, want slow", v)
	}
}
