package measure

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"millrace/internal/runtest"
)

// TestIllness: a failure now and then costs nothing; a socket that goes on failing is
// left alone for longer and longer, and told of once.
func TestIllness(t *testing.T) {
	var i illness
	told, waited := 0, time.Duration(0)
	for n := range 100 {
		pause, tell := i.failed()
		if tell {
			told++
		}
		if n < illFrom-1 && (pause > 0 || tell) {
			t.Errorf("failure %d: %v, %v", n, pause, tell)
		}
		if pause < min(waited, illPause) || pause > illPause {
			t.Errorf("failure %d: a pause of %v after one of %v", n, pause, waited)
		}
		waited = pause
	}
	if told != 1 || waited != illPause || !i.over() || i.over() {
		t.Errorf("told %d times, the last pause was %v", told, waited)
	}
}

// TestResponderOutlivesItsSocket: one that fails for long is told of, and answered from
// when it works again.
func TestResponderOutlivesItsSocket(t *testing.T) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	log := &runtest.Journal{}
	c := cluster(t, keyA)
	r, err := NewResponder(DefaultResponderConfig(), "relay-1", c, slog.New(slog.NewJSONHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Unix(1, 0)); err != nil { // each read fails from now on
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, conn) }()
	const ill, well = "probes of other nodes cannot be read: links to this node are taken for bad until they can", "probes of other nodes are answered again"
	log.Await(t, ill)
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	asker, err := net.DialUDP("udp", nil, conn.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	p := asked(c, time.Now(), "relay-1")
	if _, err := asker.Write(p.append(nil)); err != nil {
		t.Fatal(err)
	}
	log.Await(t, well)
	if l := log.Lines(t, ill); len(l) != 1 {
		t.Errorf("told %d times", len(l))
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
