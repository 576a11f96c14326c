package frontend

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"millrace/internal/sched"
)

// TestPlanComesLate: a server that begins without a plan answers from the first one
// though nobody has asked since: who asks first gets an answer.
func TestPlanComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sched.New()
		d, err := NewDNS(DefaultDNSConfig(), s, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx) }()
		synctest.Wait()
		plan := testPlan(t)
		s.Swap(sched.NewView(plan, nil, nil))
		time.Sleep(time.Second)
		synctest.Wait()
		if d.zones.Load().plan != plan {
			t.Error("the plan is not read")
		}
		// Another one is read at the first question after it.
		next := testPlan(t)
		s.Swap(sched.NewView(next, nil, nil))
		q := new(dns.Msg)
		q.SetQuestion("example.com.", dns.TypeSOA)
		newDNSClient(d).ask(t, q)
		synctest.Wait()
		if d.zones.Load().plan != next {
			t.Error("a question does not have the next plan read")
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
