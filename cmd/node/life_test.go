package main

import (
	"testing"

	"millrace/internal/admin"
	"millrace/internal/runtest"
)

// TestLifeWithoutAdmin closes the admin port under a running node: it serves on.
func TestLifeWithoutAdmin(t *testing.T) {
	tr := built(t, "")
	var err error
	if tr.admin, err = admin.New(tr.cfg.Admin.Config, &runtest.Broken{}, admin.Program{Kind: "node", API: tr.api}, tr.out.Log); err != nil {
		t.Fatal(err)
	}
	tr.start(t)
	tr.log.Await(t, "the node goes on without its admin port")
	if code, _ := runtest.Get(t, tr.url("http", "/")); code != 200 {
		t.Errorf("status %d", code)
	}
}
