package console

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

func TestConfigValidate(t *testing.T) {
	_, hash := NewToken()
	f := func(change func(*Config), want string) {
		t.Helper()
		c := testConfig()
		c.Tokens = []Token{{"probe", hash, Reader}}
		change(&c)
		err := c.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
		if err != nil && (strings.Contains(err.Error(), hashed()) || strings.Contains(err.Error(), hash)) {
			t.Errorf("the error shows a hash: %v", err)
		}
	}
	f(func(*Config) {}, "")
	f(func(c *Config) { *c = DefaultConfig() }, "")
	f(func(c *Config) { c.Users[0].Name = "" }, "users: name of number 1")
	f(func(c *Config) { c.Users[1].Name = " ben" }, "users: name of number 2")
	f(func(c *Config) { c.Users[0].Name = "a\nb" }, "without blanks")
	f(func(c *Config) { c.Users[0].Name = strings.Repeat("x", 65) }, "1 to 64 bytes")
	f(func(c *Config) { c.Users[0].Name = strings.Repeat("x", 64) }, "")
	f(func(c *Config) { c.Users[0].Name = "ben" }, `the name "ben" stands there twice`)
	f(func(c *Config) { c.Tokens[0].Name = "ben" }, `the name "ben" stands there twice`)
	f(func(c *Config) { c.Users[0].PasswordHash = password }, `password_hash of "ana" is no bcrypt hash: make one with router hash-password`)
	f(func(c *Config) { c.Users[0].PasswordHash = "" }, "no bcrypt hash")
	f(func(c *Config) { c.Users[0].PasswordHash = strings.Replace(hashed(), "$04$", "$15$", 1) }, "has cost 15, at most 14")
	f(func(c *Config) { c.Tokens[0].Hash = "sha256:12" }, `tokens: hash of "probe" is not sha256:`)
	f(func(c *Config) { c.Tokens[0].Hash = "sha256:" + strings.Repeat("x", 64) }, "64 hexadecimal digits")
	f(func(c *Config) { c.Idle = time.Second }, "idle is 1s: use 1m0s up to session, which is 12h0m0s")
	f(func(c *Config) { c.Idle = 13 * time.Hour }, "idle is 13h0m0s")
	f(func(c *Config) { c.Session = 31 * 24 * time.Hour }, "session is 744h0m0s: use at most 720h0m0s")
	f(func(c *Config) { c.Listeners = 0 }, "listeners is 0: use 1 to 10000")
	f(func(c *Config) { c.Users = make([]User, 1001) }, "more than 1000 entries")
}

func TestRoleText(t *testing.T) {
	for _, want := range []Role{Reader, Operator} {
		b, err := want.MarshalText()
		var got Role
		if err != nil || got.UnmarshalText(b) != nil || got != want {
			t.Errorf("%v becomes %v", want, got)
		}
	}
	var r Role
	if err := r.UnmarshalText([]byte("admin")); err == nil || !strings.Contains(err.Error(), "use read-only or operator") {
		t.Errorf("admin: %v", err)
	}
}

func TestPasswords(t *testing.T) {
	for _, bad := range []string{"", "123456789", strings.Repeat("x", 73)} {
		if _, err := Hash(bad); err == nil || !strings.Contains(err.Error(), "use 10 to 72") {
			t.Errorf("%d bytes: %v", len(bad), err)
		}
	}
	longest := strings.Repeat("x", 72)
	hash, err := hashAt(longest, bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	f := func(password string, want bool) {
		t.Helper()
		if got := Matches(hash, password); got != want {
			t.Errorf("%d bytes match: %v", len(password), got)
		}
	}
	f(longest, true)
	f(longest+"x", false) // bcrypt would not see the last one
	f(longest[1:], false)
	f("", false)
}

func TestTokens(t *testing.T) {
	one, hash := NewToken()
	other, _ := NewToken()
	if one == other || !strings.HasPrefix(one, "millrace_") || len(one) != len("millrace_")+43 {
		t.Errorf("tokens %s and %s", one, other)
	}
	if _, ok := parseTokenHash(hash); !ok {
		t.Errorf("%s is no hash", hash)
	}
}

func TestReasons(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Reasons() {
		if r.String() == "" || seen[r.String()] || statuses[r] < 400 {
			t.Errorf("reason %d: %q, status %d", r, r, statuses[r])
		}
		seen[r.String()] = true
	}
	if got := reasons.String(); got != "reason(19)" {
		t.Errorf("no reason is %s", got)
	}
}
