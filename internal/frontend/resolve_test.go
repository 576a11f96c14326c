package frontend

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// resolved is what programs read.
type resolved struct {
	Domain string
	Stream string
	Reason string
	Error  string
	TTL    int
	Ticket string
	Client struct {
		IP          netip.Addr
		Bits        int
		Source      string
		Region, ISP string
	}
	Edges []struct {
		Node      string
		V4, V6    netip.Addr
		Host      string
		HTTPPort  int `json:"http_port"`
		HTTPSPort int `json:"https_port"`
		Weight    int
		Reason    string
	}
}

func decode[T any](t testing.TB, b []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return v
}

func resolve(t testing.TB, h *HTTP, from, query string) resolved {
	t.Helper()
	r := get(t, h, from, "1.2.3.4", "/v1/resolve?"+query)
	if r.StatusCode() != 200 || string(r.Header.ContentType()) != "application/json" {
		t.Fatalf("%s: %d %s", query, r.StatusCode(), r.Body())
	}
	return decode[resolved](t, r.Body())
}

func TestResolve(t *testing.T) {
	keys := newKeys(t, clusterKey)
	h := newHTTP(t, keys, nil)
	a := resolve(t, h, north4, "domain="+play+"&stream=live/room&n=3")
	if a.Domain != play || a.Stream != "live/room" || a.Reason != "placed" || a.TTL != 60 || len(a.Edges) < 1 {
		t.Fatalf("%+v", a)
	}
	if c := a.Client; c.IP.String() != north4 || c.Region != "north" || c.ISP != "telecom" || c.Source != "coverage" || c.Bits < 16 || c.Bits > 32 {
		t.Errorf("client %+v", c)
	}
	if e := a.Edges[0]; e.Node != "north-1" || e.V4.String() != "192.0.2.11" || e.V6.String() != "2001:db8:1::11" ||
		e.Host != "north-1.cdn.example.com" || e.HTTPPort != 8080 || e.HTTPSPort != 8443 || e.Weight < 1 || e.Reason != "placed" {
		t.Errorf("edge %+v", e)
	}
	if err := keys.CheckTicket(time.Now().Add(50*time.Second), "live/room", a.Ticket); err != nil {
		t.Errorf("ticket %q within the TTL: %v", a.Ticket, err)
	}
	f := func(query, node, ip string) {
		t.Helper()
		if a := resolve(t, h, north4, "domain="+play+"&"+query); a.Edges[0].Node != node || a.Client.IP.String() != ip {
			t.Errorf("%s: %s for %v, want %s for %s", query, a.Edges[0].Node, a.Client.IP, node, ip)
		}
	}
	f("", "north-1", north4)
	f("ip=", "north-1", north4)
	f("ip="+south4, "south-1", south4)
	f("ip=::ffff:"+south4, "south-1", south4)
	f("ip="+south4+"/24", "south-1", "1.2.0.0")
	f("ip="+west6, "west-1", west6)
	f("ip=2400%3A3%3A%3A7", "west-1", west6)
	f("region=south", "south-1", north4)
	f("region=south&isp=unicom&net=5g", "south-1", north4)
	f("family=6&ip="+west6, "west-1", west6)
	f("family=4&region=west&scheme=https", "north-1", north4)
	f("sign=x&expires=y&whatever", "north-1", north4)
	if a := resolve(t, h, north4, "domain=PLAY.cdn.example.com."); a.Ticket != "" || a.Stream != "" || a.Domain != play {
		t.Errorf("without a stream: %+v", a)
	}
	if a := resolve(t, h, north4, "domain=x.app.cdn.example.com&stream=live%2Froom.flv"); a.Domain != "x.app.cdn.example.com" || a.Stream != "live/room" {
		t.Errorf("below a wildcard: %+v", a)
	}
}

func TestResolveRefuses(t *testing.T) {
	h := newHTTP(t, newKeys(t), nil)
	f := func(query string, status int, reason, want string) {
		t.Helper()
		r := get(t, h, north4, "x", "/v1/resolve?"+query)
		wantRefused(t, r, status, reason, want)
		if e := decode[resolved](t, r.Body()); e.Reason != reason || e.Error == "" {
			t.Errorf("%s: %s", query, r.Body())
		}
	}
	f("", 400, "bad_request", "domain is missing")
	f("domain=", 404, "unknown_domain", "serves the name")
	f("domain=x.example", 404, "unknown_domain", "x.example")
	f("domain="+strings.Repeat("x", 300), 404, "unknown_domain", "xxx")
	f("domain=%zz", 400, "bad_request", "percent-encoded")
	f("domain=quiet.cdn.example.com", 404, "not_found", "httpdns: true")
	f("domain=secure.cdn.example.com", 404, "not_found", "httpdns: true")
	f("domain=empty.cdn.example.com", 503, "no_edges", "no edge")
	const d = "domain=" + play + "&"
	f(d+"ip=1.2.3", 400, "bad_request", "ip: ")
	f(d+"ip=1.2.3.4/33", 400, "bad_request", "ip: ")
	f(d+"ip=::ffff:1.2.3.4/80", 400, "bad_request", "ip: ")
	f(d+"ip="+strings.Repeat("1", 100), 400, "bad_request", "ip: ")
	f(d+"ip=%", 400, "bad_request", "percent-encoded")
	f(d+"stream=room", 400, "bad_name", "/APP/NAME")
	f(d+"net=6g", 400, "bad_request", "net: ")
	f(d+"n=0", 400, "bad_request", "n: is 0, must be 1 to 8")
	f(d+"n=9", 400, "bad_request", "must be 1 to 8")
	f(d+"n=x", 400, "bad_request", "n: ")
	f(d+"family=5", 400, "bad_request", "family: ")
	f(d+"scheme=ftp", 400, "bad_request", "scheme: ")
	f(d+"isp="+strings.Repeat("x", 65), 400, "bad_request", "isp: longer than 64")
	f(strings.Repeat(d, 65), 400, "bad_request", "65 questions at once, at most 64")
}

type results struct{ Results []resolved }

func TestResolveBatch(t *testing.T) {
	keys := newKeys(t, clusterKey)
	h := newHTTP(t, keys, nil)
	var got []string
	note := func(body []byte) string {
		got = got[:0]
		for _, r := range decode[results](t, body).Results {
			node := r.Reason
			if len(r.Edges) > 0 {
				node = r.Edges[0].Node
			}
			got = append(got, r.Domain+" "+node)
		}
		return strings.Join(got, ", ")
	}
	r := get(t, h, south4, "x", "/v1/resolve?domain="+play+"&domain=x&domain=%25&domain=y.app.cdn.example.com&stream=live/room")
	if got, want := note(r.Body()), play+" south-1, x unknown_domain, % unknown_domain, y.app.cdn.example.com south-1"; got != want {
		t.Errorf("GET: %s, want %s", got, want)
	}
	post := func(body string) string {
		t.Helper()
		r := ask(t, h, south4, fmt.Sprintf("POST /v1/resolve HTTP/1.1\nHost: x\nContent-Length: %d\n\n", len(body))+body)
		if r.StatusCode() != 200 {
			return strconv.Itoa(r.StatusCode()) + " " + string(r.Body())
		}
		return note(r.Body())
	}
	if got, want := post(`{"queries":[{"domain":"`+play+`","ip":"`+north4+`","n":2,"net":"wifi"},{"domain":"`+play+`"},`+
		`{"domain":"`+play+`","ip":"x"},{"domain":"`+play+`","n":99},{"domain":"a\"b","stream":"live/room"}]}`),
		play+" north-1, "+play+" south-1, "+play+` bad_request, `+play+` bad_request, a"b unknown_domain`; got != want {
		t.Errorf("POST: %s, want %s", got, want)
	}
	f := func(body, want string) {
		t.Helper()
		if got := post(body); !strings.HasPrefix(got, want) {
			t.Errorf("%.60s: %s, want %s", body, got, want)
		}
	}
	one := `{"domain":"x"}`
	f(`{"queries":[`+strings.Repeat(one+",", 63)+one+`]}`, "x unknown_domain")
	f(`{"queries":[`+strings.Repeat(one+",", 64)+one+`]}`, `400 {"error":"65 questions at once`)
	f(`{"queries":[]}`, `400 {"error":"domain is missing`)
	f(`{"querys":[]}`, `400 {"error":"the body is not`)
	f(`{"queries":[]}{}`, `400 {"error":"the body goes on`)
	f(`[`, `400 {"error":"the body is not`)
	f(``, `400 {"error":"the body is not`)
	f(strings.Repeat(" ", maxQuestions+1), `413 {"error":"the body has 65537 bytes`)
}

// Whatever a name holds, the answer is JSON and says it as it was.
func TestJSONStrings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		if rapid.Bool().Draw(t, "text") {
			s = rapid.String().Draw(t, "s")
		}
		var got string
		if err := json.Unmarshal(appendString(nil, s), &got); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if utf8.ValidString(s) && got != s {
			t.Fatalf("%q became %q", s, got)
		}
	})
}
