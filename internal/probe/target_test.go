package probe

import (
	"net/netip"
	"reflect"
	"testing"

	"millrace/internal/sched"
)

func TestTargets(t *testing.T) {
	addrs := func(list ...string) (out []netip.Addr) {
		for _, s := range list {
			out = append(out, netip.MustParseAddr(s))
		}
		return out
	}
	two := addrs("192.0.2.1", "192.0.2.2", "2001:db8::1")
	v4, v6, both := key{"e1", sched.V4}, key{"e1", sched.V6}, key{"e1", sched.V4 | sched.V6}
	cases := []struct {
		name string
		node sched.Node
		want []target
	}{
		{"the first address of each family", sched.Node{HTTPPort: 80, Addresses: two}, []target{
			{key: v4, address: address{network: "tcp4", addr: "192.0.2.1:80", host: "192.0.2.1:80", name: "192.0.2.1", names: true}},
			{key: v6, address: address{network: "tcp6", addr: "[2001:db8::1]:80", host: "[2001:db8::1]:80", name: "2001:db8::1"}},
		}},
		{"a name in the certificate", sched.Node{HTTPPort: 80, HTTPSPort: 443, Host: "e1.example.com", Addresses: two[:1]}, []target{
			{key: v4, address: address{network: "tcp4", addr: "192.0.2.1:80", host: "e1.example.com", name: "e1.example.com", names: true}},
		}},
		{"HTTPS alone", sched.Node{HTTPSPort: 443, Host: "e1.example.com", Addresses: two[2:]}, []target{
			{key: v6, address: address{network: "tcp6", addr: "[2001:db8::1]:443", host: "e1.example.com", name: "e1.example.com", tls: true, names: true}},
		}},
		{"IPv4 in IPv6 form", sched.Node{HTTPPort: 80, Addresses: addrs("::ffff:192.0.2.1")}, []target{
			{key: v4, address: address{network: "tcp4", addr: "192.0.2.1:80", host: "192.0.2.1:80", name: "192.0.2.1", names: true}},
		}},
		{"no port", sched.Node{Addresses: two}, nil},
		{"no address", sched.Node{HTTPPort: 80}, nil},
		{"an address to probe", sched.Node{HTTPPort: 80, Addresses: two, Probe: "http://10.0.0.1:8080"}, []target{
			{key: both, address: address{network: "tcp", addr: "10.0.0.1:8080", host: "10.0.0.1:8080", name: "10.0.0.1", names: true}},
		}},
		{"an address to probe, one family", sched.Node{HTTPPort: 80, Addresses: two[:2], Probe: "https://[fd00::1]/base/"}, []target{
			{key: v4, address: address{network: "tcp", addr: "[fd00::1]:443", host: "[fd00::1]", name: "fd00::1", path: "/base", tls: true, names: true}},
		}},
		{"a name to probe", sched.Node{HTTPPort: 80, Addresses: two, Probe: "http://e1.example.com"}, []target{
			{key: v4, address: address{network: "tcp4", addr: "e1.example.com:80", host: "e1.example.com", name: "e1.example.com", names: true}},
			{key: v6, address: address{network: "tcp6", addr: "e1.example.com:80", host: "e1.example.com", name: "e1.example.com"}},
		}},
		{"an address to probe, but none to offer", sched.Node{HTTPPort: 80, Probe: "http://10.0.0.1"}, nil},
		{"a probe that is no URL", sched.Node{HTTPPort: 80, Addresses: two, Probe: "http://[::1"}, nil},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			tc.node.ID, tc.node.Role = "e1", "edge"
			if got := targetsOf(&tc.node); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got\n%+v\nwant\n%+v", got, tc.want)
			}
			for _, role := range []string{"center", "relay", ""} {
				tc.node.Role = role
				if got := targetsOf(&tc.node); got != nil {
					t.Errorf("role %q has targets %+v", role, got)
				}
			}
		})
	}
}
