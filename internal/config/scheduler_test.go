package config

import (
	"errors"
	"strings"
	"testing"
)

// TestSchedulerSections: what sections of a scheduler must agree on, and that it has
// something to place by.
func TestSchedulerSections(t *testing.T) {
	if _, err := Load(DefaultScheduler(), Sources{}); !errors.Is(err, ErrNoFiles) {
		t.Errorf("without files: %v", err)
	}
	files := []Flag{{"--nodes", "files.nodes", "n.yaml"}, {"--domains", "files.domains", "d.yaml"}}
	f := func(want string, flags ...Flag) {
		t.Helper()
		_, err := Load(DefaultScheduler(), Sources{Flags: append(files[:len(files):len(files)], flags...)})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v: got %v, want %q", flags, err, want)
		}
	}
	f("")
	f("--domains: files: domains is missing", Flag{"--domains", "files.domains", ""})
	f("--https: address.https needs a certificate", Flag{"--https", "address.https", ":8443"})
	f("--admin: address.admin is :9091, which other machines can reach", Flag{"--admin", "address.admin", ":9091"})
	f("", Flag{"--admin", "address.admin", ":9091"}, Flag{"--set", "admin.token", "sixteen-letters-long"})
	f("--internal: address.internal refuses what is not signed", Flag{"--internal", "address.internal", ":8091"})
	f("address.http is :8053, as is address.dns", Flag{"--http", "address.http", ":8053"})
	f("the scheduler would answer nobody", Flag{"--dns", "address.dns", ""}, Flag{"--http", "address.http", ""})
	f("--dns: address: dns is \"53\": use host:port", Flag{"--dns", "address.dns", "53"})
	f(`unknown setting "address.rtmp"`, Flag{"--set", "address.rtmp", ":1935"})
}
