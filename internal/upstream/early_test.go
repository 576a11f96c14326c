package upstream

import (
	"testing"
	"time"

	"millrace/internal/faultnet"
)

// A reader who leaves before the stream is there leaves nothing behind that the next
// one would suffer from: it is one stream, and all of it.
func TestLeavesBeforeTheFirstTag(t *testing.T) {
	center := start(t, "center")
	slow := faultnet.Fault{Delay: 50 * time.Millisecond}
	link, err := faultnet.ListenTCP("127.0.0.1:0", center.url[len("http://"):], faultnet.Config{Up: slow, Down: slow})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	edge := start(t, "edge", pool("http://"+link.Addr()), func(c *Config, _ *Options) { c.Linger = 5 * time.Second })
	center.publish("live/a")
	early := edge.attach("live/a")
	was := early.s
	early.detach()
	r := edge.attach("live/a")
	if r.s != was {
		t.Fatal("it is another stream than the one that is being brought")
	}
	r.detach()
	eventually(t, "it is published", func() bool { s, ok := edge.hub.Lookup("live/a"); return ok && s == was })
	r = edge.attach("live/a")
	defer r.detach()
	want(t, r.read(150), "") // over the second after which the link tells its state again
	if r.s.Epoch() == 0 {
		t.Error("the stream does not know its epoch")
	}
}
