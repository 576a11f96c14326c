package control

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestUnsignedAnswer: the one who has to do something is the server's operator.
func TestUnsignedAnswer(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
	defer srv.Close()
	c := newClient("e1", newCluster(t, "a-key-of-the-cluster"), nil, nil)
	defer c.close()
	_, err := c.ask(t.Context(), srv.URL, snapshotPath, 0, MaxSnapshot)
	if outcomeOf(err) != Forged || !strings.Contains(err.Error(), "is not signed: give that server the cluster key") {
		t.Errorf("got %v", err)
	}
}
