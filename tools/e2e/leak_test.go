package e2e

import (
	"context"
	"testing"
	"time"

	"millrace/tools/churn"
)

// TestNothingIsLeft is bench/leak in small: connections of all kinds come and go,
// and the node goes back to what it held before.
func TestNothingIsLeft(t *testing.T) {
	node := StartNodeEnv(t, []string{"MILLRACE_STREAM_GRACE=500ms"})
	n := churn.Node{PID: node.Cmd.Process.Pid, RTMP: node.Addr("rtmp"), HTTP: node.Addr("http"), Admin: node.Addr("admin")}

	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	broke := make(chan error, 1) // capacity 1: one message
	go func() { broke <- n.Standing(ctx) }()
	defer func() {
		cancel()
		if err := <-broke; err != nil {
			t.Error("the stream that all watch broke:", err)
		}
	}()

	cfg := churn.Config{Node: n, Cycles: 2000, Workers: 16}
	round := func() {
		t.Helper()
		res, err := churn.Run(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Failed) > 0 {
			t.Fatalf("some cycles failed: %v", res)
		}
	}
	round() // maps and pools take their room
	base, err := n.Rest(ctx, 4*time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	round()
	// After so few cycles pools may still have grown: 256 KiB are 130 bytes for each,
	// where one forgotten connection is some KiB. And a goroutine may have been started that
	// runs from when it is first needed: those of forgotten connections are thousands.
	allowed := base
	allowed.Heap += 256 << 10
	allowed.Goroutines += 2
	left, err := n.Rest(ctx, patience, func(h churn.Holdings) bool { return h.Within(allowed, 0.02) })
	if err != nil {
		t.Fatal(err)
	}
	if !left.Within(allowed, 0.02) {
		t.Errorf("left:    %v\nallowed: %v", left, allowed)
	}
}
