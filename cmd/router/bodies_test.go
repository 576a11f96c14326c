package main

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// TestStrangersPromiseNoMemory: a big body is refused by its head, unless that proves who
// sends it: memory would be taken for all of it before it has come.
func TestStrangersPromiseNoMemory(t *testing.T) {
	const token = "millrace_inlt7t819r-q60hhgzT7d93LZPVH3FtC6lB5XDKpFTk"
	tr := built(t, t.TempDir(), "cluster: {keys: [a-key-of-the-whole-cluster]}\nconsole: {tokens: [{name: deploy, role: operator, hash: '"+
		"sha256:5fa02129d4a25146fc21ad0215d793e6a0825766bf3519573fea75174e325d6e'}]}\n")
	tr.start(t)
	tr.awaitLog(t, "ready")
	f := func(what, method, path string, size int, sent bool, head, want string) {
		t.Helper()
		conn, err := net.Dial("tcp", tr.addr("http"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(requestTimeout - time.Second)); err != nil { // before it is refused as late
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n", method, path, size, head)
		if sent {
			fmt.Fprint(conn, strings.Repeat("x", size))
		}
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil || !strings.Contains(line, want) {
			t.Errorf("%s: %q, %v; want %s", what, line, err, want)
		}
	}
	const mine = "Authorization: Bearer " + token + "\r\n"
	f("a heartbeat of a stranger", "POST", "/v1/heartbeat", maxUnknown+1, false, "", " 413 ")
	f("one that is as small as most", "POST", "/v1/heartbeat", maxUnknown, true, "", " 401 ")
	f("a signature that is none", "POST", "/v1/heartbeat", maxUnknown+1, false,
		"Millrace-Digest: "+strings.Repeat("0", 64)+"\r\nMillrace-Signature: 1:2\r\n", " 413 ")
	f("a document of a stranger", "PUT", "/api/documents/coverage", maxUnknown+1, false, "Cookie: millrace=AAAA\r\n", " 413 ")
	f("a wrong token", "PUT", "/api/documents/coverage", maxUnknown+1, false, "Authorization: Bearer millrace_no\r\n", " 413 ")
	f("a document of a program", "PUT", "/api/documents/coverage", maxUnknown+1, true, mine, " 400 ")
	f("more than anybody may send", "PUT", "/api/documents/coverage", maxBody+1, false, mine, " 413 ")
	f("a path of nobody", "POST", "/nothing", maxUnknown+1, false, "", " 413 ")
}
