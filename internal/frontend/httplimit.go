package frontend

import (
	"encoding/binary"
	"net/netip"
	"time"

	"millrace/internal/address"
)

// askers is how many addresses that are near their rate are told apart.
const askers = 1 << 16

// askerKey is whose bucket of questions it is: an address, or the /64 of a household.
func askerKey(a netip.Addr) rateKey {
	if a.Is4() {
		b := a.As4()
		return rateKey{network: v4Network | uint64(binary.BigEndian.Uint32(b[:]))}
	}
	b := a.As16()
	return rateKey{network: binary.BigEndian.Uint64(b[:8])}
}

// mayAsk counts n questions of a and reports whether they are answered.
func (h *HTTP) mayAsk(set *httpSettings, now time.Time, a netip.Addr, n int) bool {
	c := &set.cfg.Resolve
	if c.Rate == 0 || address.Within(set.unlimited, a) {
		return true
	}
	each := max(uint64(time.Second/time.Microsecond)/uint64(c.Rate), 1)
	return h.limit.allow(now, askerKey(a), rate{interval: uint64(n) * each, burst: uint64(c.Burst) * each})
}
