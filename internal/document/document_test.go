package document

import (
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

// every has a field of each kind that is read.
type every struct {
	Name   string         `json:"name"`
	On     bool           `json:"on,omitempty"`
	Bytes  int64          `json:"bytes"`
	Count  int            `json:"count"`
	Port   uint16         `json:"port"`
	Share  float64        `json:"share"`
	Pause  time.Duration  `json:"pause"`
	Addr   netip.Addr     `json:"addr"`
	List   []string       `json:"list"`
	Near   map[string]int `json:"near"`
	Lat    *float64       `json:"lat"`
	Inner  inner          `json:"inner"`
	Items  []inner        `json:"items"`
	hidden int
	Never  string `json:"-"`
}

type inner struct {
	Region string   `json:"region"`
	ISPs   []string `json:"isps"`
}

func TestDecode(t *testing.T) {
	const text = `# a comment
name: 0123
on: true
bytes: 1.5GiB
count: -7
port: 8080
share: 0.25
pause: 1m30s
addr: 2001:db8::1
list: [no, "1"]
near: {south: 28, west: 40}
lat: -33.9
inner: {region: north}
items:
  - region: north
    isps: ["*"]
  - region: south
`
	lat := -33.9
	want := every{
		Name: "0123", On: true, Bytes: 3 << 29, Count: -7, Port: 8080, Share: 0.25, Pause: 90 * time.Second,
		Addr: netip.MustParseAddr("2001:db8::1"), List: []string{"no", "1"}, Near: map[string]int{"south": 28, "west": 40},
		Lat: &lat, Inner: inner{Region: "north"},
		Items: []inner{{Region: "north", ISPs: []string{"*"}}, {Region: "south"}},
	}
	var got every
	lines, err := Decode("f.yaml", []byte(text), &got)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v; want %+v", got, err, want)
	}
	for path, want := range map[string]int{
		"name": 2, "items": 14, "items[0]": 15, "items[0].isps": 16, "items[0].isps[0]": 16, "items[1].region": 17,
		"items[1].isps": 17, // is not there: the item that lacks it
		"items[9]":      14,
		"elsewhere":     0, "": 0,
	} {
		if line := lines.Of(path); line != want {
			t.Errorf("%q is on line %d, want %d", path, line, want)
		}
	}
}

// TestDecodeKeepsDefaults: what a file does not say stays as it was.
func TestDecodeKeepsDefaults(t *testing.T) {
	got := every{Share: 0.5, Inner: inner{Region: "west"}}
	if _, err := Decode("f.yaml", []byte("name: a\ninner:\n  isps: [x]\n"), &got); err != nil {
		t.Fatal(err)
	}
	if got.hidden != 0 || got.Share != 0.5 || got.Inner.Region != "west" || len(got.Inner.ISPs) != 1 {
		t.Errorf("got %+v", got)
	}
	for _, text := range []string{"", "# nothing\n", "---\n", "inner:\n  #region: x\nitems:\n"} {
		if _, err := Decode("f.yaml", []byte(text), &got); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestDecodeFaults(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"mistyped", "nmae: a", `f.yaml:1: unknown key "nmae"; did you mean "name"?`},
		{"unknown", "wholly_unlike: a", `f.yaml:1: unknown key "wholly_unlike"`},
		{"hidden", "hidden: 1", `unknown key "hidden"`},
		{"not for files", "Never: 1", `unknown key "Never"`},
		{"mistyped in a list", "items:\n  - regoin: x", `f.yaml:2: items[0]: unknown key "regoin"; did you mean "region"?`},
		{"twice", "name: a\nname: b", "f.yaml:2: name is already set on line 1"},
		{"twice in a map", "near:\n  a: 1\n  a: 2", "f.yaml:3: near: a is already set on line 2"},
		{"no value", "inner:\n  region:", "f.yaml:2: inner.region: has no value"},
		{"no value in a list", "list:\n  - a\n  -", "f.yaml:3: list[1]: has no value"},
		{"bool", "on: yes", `on: "yes" is neither true nor false`},
		{"size", "bytes: 8M", `bytes: "8M" is not a size`},
		{"whole number", "count: 1.5", `count: "1.5" is not a whole number`},
		{"out of range", "port: 65536", "port: 65536 is out of range"},
		{"below zero", "port: -1", "port: -1 is out of range"},
		{"number", "share: .nan", `share: ".nan" is not a number`},
		{"infinite", "share: inf", `share: "inf" is not a number`},
		{"duration", "pause: 5", `pause: "5" is not a duration`},
		{"address", "addr: here", "f.yaml:1: addr: ParseAddr"},
		{"list for a word", "name: [a]", "name: want one value, not a list or a section"},
		{"word for a list", "list: a", "list: want a list"},
		{"word for a section", "inner: a", "inner: want keys and values below it"},
		{"list for a map", "near: [1]", "near: want keys and values below it"},
		{"key that is a list", "near:\n  ? [a]\n  : 1", "near: a key must be one word"},
		{"alias", "name: &a x\nlist: [*a]", "f.yaml:1: name: YAML anchors and aliases are not supported\nf.yaml:2: list[0]: YAML anchors"},
		{"alias of itself", "items: &a [*a]", "YAML anchors and aliases are not supported"},
		{"merge", "inner:\n  <<: {region: a}", `unknown key "<<"`},
		{"list at the top", "- a", "f.yaml:1: want keys and values at the top"},
		{"two documents", "name: a\n---\nname: b", "more than one document"},
		{"tab", "inner:\n\tregion: a", "f.yaml:2: not YAML: this line is indented with a tab: use spaces"},
		{"syntax", "name: a\nlist: [a\n", "f.yaml:2: not YAML"},
		{"all at once", "on: 1\nport: x\nbytes: y", "f.yaml:1: on"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Decode("f.yaml", []byte(tc.text), &every{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q in it", err, tc.want)
			}
			if _, ok := errors.AsType[*Fault](err); !ok {
				t.Errorf("%v holds no Fault", err)
			}
		})
	}
	_, err := Decode("f.yaml", []byte(strings.Repeat("name: [a]\n", 1)+"on: 1\nport: x\nbytes: y"), &every{})
	if n := strings.Count(err.Error(), "\n") + 1; n != 4 {
		t.Errorf("%d faults are told of 4:\n%v", n, err)
	}
}

// TestDecodeIsBounded: an error says neither everything nor the same for ever.
func TestDecodeIsBounded(t *testing.T) {
	_, err := Decode("f.yaml", []byte("items:\n"+strings.Repeat("  - {regoin: x}\n", 1000)), &every{})
	if n := strings.Count(err.Error(), "\n") + 1; n != maxFaults+1 || !strings.HasSuffix(err.Error(), "f.yaml: 980 more faults") {
		t.Errorf("%d lines, the last %q", n, err.Error()[max(0, len(err.Error())-60):])
	}
	_, err = Decode("f.yaml", []byte("on: "+strings.Repeat("x", 100_000)), &every{})
	if len(err.Error()) > 2*maxText {
		t.Errorf("an error has %d bytes", len(err.Error()))
	}
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	if _, err := Decode("f.yaml", []byte("items: "+deep), &every{}); err == nil {
		t.Error("nested 9000 deep is taken")
	}
	type tree struct {
		Below []tree `json:"below"`
	}
	_, err = Decode("f.yaml", []byte(strings.Repeat("{below: [", 40)+strings.Repeat("]}", 40)), &tree{})
	if err == nil || !strings.Contains(err.Error(), "nested too deep") {
		t.Errorf("nested 40 deep: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"name: a", "items:\n  - region: x\n", "inner: {isps: [a, b]}", "a: &b [*b]", "? [a]\n: 1", "\t", "on: !!binary x", "lat: 1\nnear: {a: 1}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<14 {
			return
		}
		var v every
		lines, err := Decode("f.yaml", b, &v)
		if err != nil && lines != nil {
			t.Error("lines beside an error")
		}
		if err != nil && err.Error() == "" {
			t.Error("an error without a text")
		}
	})
}
