package listen

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// issue writes a self-signed certificate with a serial number into dir.
func issue(t *testing.T, dir string, serial int64) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), DNSNames: []string{"*.test", "localhost", "other"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(4e9, 0),
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	write(t, certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), serial)
	write(t, keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), serial)
	return certFile, keyFile
}

// write writes a file whose time of change is a function of version.
func write(t *testing.T, name string, b []byte, version int64) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_000_000+version, 0)
	if err := os.Chtimes(name, at, at); err != nil {
		t.Fatal(err)
	}
}

func serial(t *testing.T, c *Certificate) int64 {
	t.Helper()
	pair, err := c.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf.SerialNumber.Int64()
}

func TestCertificate(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := issue(t, dir, 1)
	c, err := LoadCertificate(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	if name := c.Name(); name != "localhost" {
		t.Errorf("it is for %q", name)
	}
	if got := serial(t, c); got != 1 || c.Expires().Unix() != 4e9 {
		t.Errorf("certificate %d until %v", got, c.Expires())
	}
	if changed, err := c.Refresh(); changed || err != nil {
		t.Errorf("refresh of the same files: %v, %v", changed, err)
	}
	issue(t, dir, 2)
	if changed, err := c.Refresh(); !changed || err != nil || serial(t, c) != 2 {
		t.Errorf("refresh of new files: %v, %v, certificate %d", changed, err, serial(t, c))
	}
	write(t, keyFile, []byte("half a ke"), 3)
	if changed, err := c.Refresh(); !changed || err == nil || serial(t, c) != 2 {
		t.Errorf("refresh of a broken key: %v, %v, certificate %d", changed, err, serial(t, c))
	}
	if changed, err := c.Refresh(); changed || err != nil {
		t.Errorf("the same fault is told twice: %v, %v", changed, err)
	}
	if err := c.Reload(); err == nil || serial(t, c) != 2 {
		t.Errorf("reload of a broken key: %v, certificate %d", err, serial(t, c))
	}
	issue(t, dir, 4)
	if err := c.Reload(); err != nil || serial(t, c) != 4 {
		t.Errorf("reload: %v, certificate %d", err, serial(t, c))
	}
}

func TestCertificateErrors(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	certFile, keyFile := issue(t, dir, 1)
	_, otherKey := issue(t, other, 2)
	garbage := filepath.Join(dir, "garbage")
	write(t, garbage, []byte("nothing"), 1)
	f := func(cert, key, want string) {
		t.Helper()
		if _, err := LoadCertificate(cert, key); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	f(filepath.Join(dir, "none"), keyFile, "cert_file: "+filepath.Join(dir, "none")+": no such file")
	f(certFile, filepath.Join(dir, "none"), "key_file: "+filepath.Join(dir, "none")+": no such file")
	f(certFile, otherKey, "cert_file "+certFile+" with key_file "+otherKey+": tls: private key does not match")
	f(garbage, keyFile, "failed to find any PEM data in certificate")
	f(certFile, garbage, "failed to find any PEM data in key")
}

func TestCertificateRun(t *testing.T) {
	dir := t.TempDir()
	c, err := LoadCertificate(issue(t, dir, 1))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx, time.Minute, slog.New(slog.NewTextHandler(&out, nil))) }()
		issue(t, dir, 2)
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if got := serial(t, c); got != 2 {
			t.Errorf("certificate %d after a minute, want 2", got)
		}
		write(t, filepath.Join(dir, "cert.pem"), nil, 3)
		time.Sleep(3 * time.Minute)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		if n := strings.Count(out.String(), "\n"); n != 2 {
			t.Errorf("%d lines of log, want one per change:\n%s", n, out.String())
		}
	})
}

// A handshake over the whole stack: TLS above a PROXY header above TCP.
func TestTLSOverProxy(t *testing.T) {
	c, err := LoadCertificate(issue(t, t.TempDir(), 7))
	if err != nil {
		t.Fatal(err)
	}
	l := start(t, trusting)
	ln := tls.NewListener(l, c.Config())
	raw := dial(t, l)
	client := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
	done := make(chan error, 1)
	go func() {
		if _, err := raw.Write(header(t, 2, "198.51.100.1:1000")); err != nil {
			done <- err
			return
		}
		done <- client.Handshake()
	}()
	server, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := server.(*tls.Conn).Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := client.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); got != 7 {
		t.Errorf("certificate %d, want 7", got)
	}
	if got := server.RemoteAddr().String(); got != "198.51.100.1:1000" {
		t.Errorf("client %s", got)
	}
	if TCPConn(server) == nil {
		t.Error("no TCP connection found below TLS")
	}
}
