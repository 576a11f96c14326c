package run

import (
	"log/slog"
	"net"
	"testing"

	"millrace/internal/listen"
	"millrace/internal/runtest"
)

// TestDoors: what is opened is told, counted and closed; operators have limits of their
// own.
func TestDoors(t *testing.T) {
	j := &runtest.Journal{}
	cfg := listen.DefaultConfig()
	d := NewDoors(cfg, listen.NewBudget(1), nil, slog.New(slog.NewJSONHandler(j, nil)))
	defer d.Close()
	ln, err := d.Open("http", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	admin, err := d.OpenAdmin("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if _, err := d.Open("https", ln.Addr().String()); err == nil {
		t.Error("an address in use is opened again")
	}
	if len(d.Opened()) != 2 || d.Addr("http") != ln.Addr() || d.Addr("admin") != admin.Addr() || d.Addr("https") != nil {
		t.Errorf("open are %+v", d.Opened())
	}
	for range 2 {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if st := d.Stats(); len(st) != 1 || st[0].Scheme != "http" || st[0].Accepted != 1 {
		t.Errorf("the figures are %+v", st)
	}
	cfg.MaxConnections = 0
	if d.Reload(cfg) == nil {
		t.Error("settings that are not valid are taken")
	}
	d.Tell()
	if l := j.Lines(t, "listening"); len(l) != 2 || l[0]["scheme"] != "http" || l[1]["addr"] != admin.Addr().String() {
		t.Errorf("told %v", l)
	}
	d.Close()
	if c, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		c.Close()
		t.Error("it is still open")
	}
}
