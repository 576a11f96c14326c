package auth

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"millrace/internal/address"
)

// addressRule is an allow and a deny list. Deny wins; no allow list allows all.
type addressRule struct {
	allow, deny []netip.Prefix
}

func (r addressRule) allows(a netip.Addr) bool {
	if len(r.allow) == 0 && len(r.deny) == 0 {
		return true
	}
	a = a.Unmap().WithZone("")
	if !a.IsValid() || address.Within(r.deny, a) {
		return false
	}
	return len(r.allow) == 0 || address.Within(r.allow, a)
}

// maxReferer bounds the work on a header that only browsers send honestly.
const maxReferer = 4096

// parseReferers brings host patterns into lower case, with a leading dot for those
// that mean everything below a domain.
func parseReferers(list []string) ([]string, error) {
	if len(list) > maxReferers {
		return nil, fmt.Errorf("has %d entries, must have 0 to %d", len(list), maxReferers)
	}
	out := make([]string, 0, len(list))
	for _, s := range list {
		h := strings.ToLower(strings.TrimSuffix(strings.TrimSpace(s), "."))
		rest, below := strings.CutPrefix(h, "*.")
		if rest == "" || strings.HasPrefix(rest, ".") || strings.ContainsAny(rest, "*/:@ ?#") && !isAddr(rest) {
			return nil, fmt.Errorf("%q is not a host name such as example.com or *.example.com", s)
		}
		if below {
			rest = "." + rest
		}
		out = append(out, rest)
	}
	return out, nil
}

func isAddr(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

func (p *policy) allowsReferer(referer string) bool {
	if len(p.referers) == 0 {
		return true
	}
	if referer == "" {
		return p.cfg.AllowEmptyReferer
	}
	if len(referer) > maxReferer {
		return false
	}
	u, err := url.Parse(referer)
	if err != nil {
		return false
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if host == "" {
		return false
	}
	for _, pattern := range p.referers {
		if pattern[0] == '.' {
			if len(host) > len(pattern) && strings.HasSuffix(host, pattern) {
				return true
			}
		} else if host == pattern {
			return true
		}
	}
	return false
}
