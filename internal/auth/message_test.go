package auth

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millrace/internal/session"
)

func TestMessage(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	c := newCluster(t, "the-first-key-of-all", "the-second-key-of-all")
	sig := c.SignMessage(now, "follow", "GET", "/v1/snapshot")
	cases := []struct {
		name    string
		at      time.Time
		sig     string
		purpose string
		fields  []string
		want    session.Reason
		ok      bool
	}{
		{"as signed", now, sig, "follow", []string{"GET", "/v1/snapshot"}, 0, true},
		{"skew is tolerated", now.Add(30 * time.Second), sig, "follow", []string{"GET", "/v1/snapshot"}, 0, true},
		{"too late", now.Add(31 * time.Second), sig, "follow", []string{"GET", "/v1/snapshot"}, session.ClockSkew, false},
		{"from the future", now.Add(-31 * time.Second), sig, "follow", []string{"GET", "/v1/snapshot"}, session.ClockSkew, false},
		{"none", now, "", "follow", []string{"GET", "/v1/snapshot"}, session.Unsigned, false},
		{"not one", now, "yes", "follow", []string{"GET", "/v1/snapshot"}, session.BadSignature, false},
		{"another purpose", now, sig, "answer", []string{"GET", "/v1/snapshot"}, session.BadSignature, false},
		{"another field", now, sig, "follow", []string{"GET", "/v1/state"}, session.BadSignature, false},
		{"fields joined", now, sig, "follow", []string{"GET/v1/snapshot"}, session.BadSignature, false},
		{"a field more", now, sig, "follow", []string{"GET", "/v1/snapshot", ""}, session.BadSignature, false},
		{"of a mark", now, c.Sign(now, Mark{Node: "follow"}), "follow", nil, session.BadSignature, false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			err := c.VerifyMessage(tc.at, tc.sig, tc.purpose, tc.fields...)
			if tc.ok {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			denied, ok := errors.AsType[*Denied](err)
			if !ok || denied.Reason != tc.want {
				t.Errorf("got %v, want reason %v", err, tc.want)
			}
		})
	}

	rotated := newCluster(t, "the-second-key-of-all")
	if err := c.VerifyMessage(now, rotated.SignMessage(now, "p"), "p"); err != nil {
		t.Errorf("signed with the second key: %v", err)
	}
	if err := rotated.VerifyMessage(now, c.SignMessage(now, "p"), "p"); err == nil {
		t.Error("a key that was taken away is still good")
	}
	open := newCluster(t)
	if sig := open.SignMessage(now, "p"); sig != "" || open.VerifyMessage(now, "", "p") != nil {
		t.Errorf("without a key the signature is %q, want none and none needed", sig)
	}
}

// TestMessageTextIsUnique looks for two messages with the same text.
func TestMessageTextIsUnique(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		field := rapid.StringOfN(rapid.RuneFrom([]rune("a1:\n")), 0, 4, -1)
		a := rapid.SliceOfN(field, 1, 4).Draw(t, "a")
		b := rapid.SliceOfN(field, 1, 4).Draw(t, "b")
		same := strings.Join(a, "\x00") == strings.Join(b, "\x00") && len(a) == len(b)
		text := func(f []string) string { return string(appendMessage(nil, "1", f[0], f[1:])) }
		if got := text(a) == text(b); got != same {
			t.Fatalf("%q and %q have the same text: %v, want %v", a, b, got, same)
		}
	})
}
