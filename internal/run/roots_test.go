package run

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

func TestRoots(t *testing.T) {
	if c, err := Roots(""); c != nil || err != nil {
		t.Errorf("no file: %v, %v", c, err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if _, err := Roots(file); err == nil {
		t.Error("a file that is not there was read")
	}
	if err := os.WriteFile(file, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Roots(file); err == nil {
		t.Error("a file without a certificate was taken")
	}
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	b := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	conf, err := Roots(file)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: conf}}
	defer client.CloseIdleConnections()
	resp, err := client.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}
