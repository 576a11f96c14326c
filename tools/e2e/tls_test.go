package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"millrace/internal/flv"
)

// certificate writes a new self-signed certificate for 127.0.0.1, with its key,
// into dir and returns the two files.
func certificate(t *testing.T, dir, name string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// startTLS starts a node that listens inside TLS too.
func startTLS(t *testing.T) (n *Node, dir string) {
	t.Helper()
	dir = t.TempDir()
	cert, key := certificate(t, dir, "first")
	return StartNode(t, "--rtmps", "127.0.0.1:0", "--https", "127.0.0.1:0", "--set", "tls.cert_file="+cert, "--set", "tls.key_file="+key), dir
}

// served returns whose certificate a listener shows.
func served(t *testing.T, addr string) string {
	t.Helper()
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].Subject.CommonName
}

// insecure does not ask who signed the certificate.
func insecure(t *testing.T) *http.Client {
	tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// TestTLS pushes with ffmpeg over RTMPS and plays with curl over HTTPS and with a
// WebSocket over TLS.
func TestTLS(t *testing.T) {
	ffmpeg := Program(t, "ffmpeg")
	n, _ := startTLS(t)
	ctx, cancel := context.WithCancel(t.Context())
	push := exec.CommandContext(ctx, ffmpeg, "-nostdin", "-v", "error", "-re", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25",
		"-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-pix_fmt", "yuv420p", "-f", "flv", "-tls_verify", "0", n.URL("rtmps", "/live/a"))
	var said bytes.Buffer
	push.Stderr = &said
	if err := push.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); push.Wait() }()
	awaitStream(t, n, "live/a")

	status, _, body := curl(t, "-k", n.URL("https", "/live/a.flv"))
	if !strings.Contains(status, "200") || !bytes.HasPrefix(body, []byte("FLV")) || len(body) < 5000 {
		t.Errorf("curl over HTTPS: %s and %d bytes; ffmpeg says %s", status, len(body), said.String())
	}
	dialer := ws.Dialer{TLSConfig: &tls.Config{InsecureSkipVerify: true}, Timeout: patience}
	conn, early, _, err := dialer.Dial(ctx, n.URL("wss", "/live/a.flv"))
	if err != nil {
		t.Fatal(err)
	}
	both := struct {
		io.Reader
		io.Writer
	}{conn, conn}
	if early != nil { // frames that came with the answer
		both.Reader = early
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if b, err := wsutil.ReadServerBinary(both); err != nil || !bytes.HasPrefix(b, []byte("FLV")) {
		t.Errorf("over wss: %.20q, %v", b, err)
	}
	if b, err := wsutil.ReadServerBinary(both); err != nil || len(b) == 0 {
		t.Errorf("then over wss: %.20q, %v", b, err)
	}
	var got struct {
		Sessions []struct {
			Action, Protocol string
			TLS              bool
		}
	}
	readJSON(t, n.URL("admin", "/v1/sessions"), &got)
	if len(got.Sessions) < 2 {
		t.Errorf("sessions are %+v", got)
	}
	for _, s := range got.Sessions {
		if !s.TLS {
			t.Errorf("%s over %s is not said to be inside TLS", s.Action, s.Protocol)
		}
	}
}

// TestCertificateReload: SIGHUP puts a new certificate in use and drops nobody; a
// bad one is refused.
func TestCertificateReload(t *testing.T) {
	n, dir := startTLS(t)
	defer publish(t, n.URL("rtmp", "/live/a"))()
	awaitStream(t, n, "live/a")
	resp, err := insecure(t).Get(n.URL("https", "/live/a.flv"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	viewer := flv.NewReader(resp.Body, 1<<20)
	goesOn := func(when string) {
		t.Helper()
		for range 50 {
			if _, err := viewer.Read(); err != nil {
				t.Fatalf("the viewer %s: %v", when, err)
			}
		}
	}
	goesOn("before")
	certificate(t, dir, "second")
	n.Signal(t, syscall.SIGHUP)
	n.AwaitMessage(t, "reloaded")
	for _, scheme := range []string{"https", "rtmps"} {
		if got := served(t, n.Addr(scheme)); got != "second" {
			t.Errorf("%s shows the certificate of %q, want the second", scheme, got)
		}
	}
	goesOn("after the reload")

	if err := os.WriteFile(filepath.Join(dir, "cert.pem"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.Signal(t, syscall.SIGHUP)
	if l := n.AwaitMessage(t, "reload refused, the old settings stay"); !strings.Contains(l.Text("err"), "cert.pem") {
		t.Errorf("the refusal says %q", l.Text("err"))
	}
	if got := served(t, n.Addr("https")); got != "second" {
		t.Errorf("after the refusal the certificate is of %q", got)
	}
	goesOn("after the refused reload")
}
