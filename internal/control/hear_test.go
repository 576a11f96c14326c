package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"millrace/internal/plan"
	"millrace/internal/stream"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestParseHeartbeat(t *testing.T) {
	want := goodHeartbeat(noon)
	text := mustJSON(want)
	got, err := ParseHeartbeat(text)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
	if err := got.Validate(noon); err != nil {
		t.Errorf("refused: %v", err)
	}
	for name, text := range map[string]string{
		"blanks":       " {\n\t\"node\" : \"e1\" , \"streams\" : { } }\r\n",
		"keys to come": `{"node":"e1","new":{"a":[1,"}",null]},"streams":{"new":[{"x":-1.5e3}],"set":[{"name":"live/a","new":true}]}}`,
		"no streams":   `{"node":"e1"}`,
		"escapes":      `{"node":"e1","streams":{"set":[{"name":"live\/\u0061","from":"r\u0031"}]}}`,
		"keys in any order": `{"node":"e1","streams":{"set":[{"name":"live/a","epoch":1},{"epoch" : 2, "name":"live/b"},
			{"viewers":3,"\u0065poch":4,"name":"live/c"},{},{"name":"live/d","epoch":5,"viewers":6,"delay":0.5}]}}`,
		"many keys": `{"node":"e1","streams":{"set":[{` + manyKeys + `"epoch":1},{"epoch":2,` + manyKeys + `"name":"live/a"}]}}`,
	} {
		got, err := ParseHeartbeat([]byte(text))
		var want Heartbeat
		if bad := json.Unmarshal([]byte(text), &want); bad != nil {
			t.Fatal(bad)
		}
		if len(want.Streams.Set) == 0 {
			want.Streams.Set = nil
		}
		if err != nil || !reflect.DeepEqual(got, &want) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

// manyKeys are more keys than are looked for.
var manyKeys = func() (out string) {
	for i := range 2 * maxKnown {
		out += fmt.Sprintf(`"new%d":%d,`, i, i)
	}
	return out
}()

// TestParseHeartbeatReadsAll has something in every field that is not read by
// encoding/json.
func TestParseHeartbeatReadsAll(t *testing.T) {
	var h Heartbeat
	for i := range 2 {
		var c Carried
		var s plan.Sample
		fill(t, reflect.ValueOf(&c).Elem(), i+1)
		fill(t, reflect.ValueOf(&s).Elem(), i+1)
		h.Streams.Set, h.Samples = append(h.Streams.Set, c), append(h.Samples, s)
	}
	h.Streams.Based, h.Streams.Gone = 5, []stream.Name{"live/x", "live/y"}
	if got, err := ParseHeartbeat(mustJSON(&h)); err != nil || !reflect.DeepEqual(got, &h) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, h)
	}
}

// fill gives every field of a struct a value of its own.
func fill(t *testing.T, v reflect.Value, seed int) {
	t.Helper()
	for i := range v.NumField() {
		switch f, n := v.Field(i), seed*100+i; {
		case f.Type() == reflect.TypeFor[time.Time]():
			f.Set(reflect.ValueOf(noon.Add(time.Duration(n) * time.Millisecond)))
		case f.CanInt():
			f.SetInt(int64(n))
		case f.CanFloat():
			f.SetFloat(float64(n) + 0.25)
		case f.Kind() == reflect.String:
			f.SetString(fmt.Sprintf("s%d", n))
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		default:
			t.Fatalf("a field of type %v: read it, and fill it here", f.Type())
		}
	}
}

func TestScannerNumbers(t *testing.T) {
	for _, text := range []string{
		"0", "-0", "7", "-7", "10", "0.5", "-0.5", "1.5e3", "1e5", "1E+5", "1e-5", "0e1", "123456789012345678",
		"0.1", "40.25", "-0.001", "12345678901234.5", "123456789012345.6", "0.1234567890123456789", "0.90071992547409931", "1234567890123456789.5", "0.10", "7.5e-3",
		"", "-", "+1", "01", "-01", "1.", ".5", "1.e5", "1e", "1e+", "--1", "1-1", "1e5.5", "0x1", "1_0", "Inf", "NaN", "00", "1..2", "+", "e5", "-e5",
	} {
		s := scanner{b: []byte(text)}
		got := s.float()
		s.end()
		var want float64
		if err := json.Unmarshal([]byte(text), &want); (err == nil) != (s.err == nil) || err == nil && got != want {
			t.Errorf("%q as a float: %v, %v, want %v, %v", text, got, s.err, want, err)
		}
		s = scanner{b: []byte(text)}
		whole := s.whole()
		s.end()
		var number int64
		if err := json.Unmarshal([]byte(text), &number); (err == nil) != (s.err == nil) || err == nil && whole != number {
			t.Errorf("%q as a whole number: %v, %v, want %v, %v", text, whole, s.err, number, err)
		}
	}
}

func TestParseHeartbeatRefuses(t *testing.T) {
	row := `{"name":"live/a"},`
	for _, c := range []struct {
		name, text string
		want       Refusal
	}{
		{"nothing", ``, BadRequest},
		{"no object", `[1]`, BadRequest},
		{"broken off", `{"node":"e1"`, BadRequest},
		{"broken off in a string", `{"node":"e1`, BadRequest},
		{"more", `{"node":"e1"} x`, BadRequest},
		{"a comma too many", `{"streams":{"set":[{"name":"a/b"},]}}`, BadRequest},
		{"a comma too few", `{"streams":{"set":[{"name":"a/b"}{"name":"a/c"}]}}`, BadRequest},
		{"streams twice", `{"streams":{},"streams":{}}`, BadRequest},
		{"streams null", `{"streams":null}`, BadRequest},
		{"a name that is a number", `{"streams":{"set":[{"name":7}]}}`, BadRequest},
		{"a control character", "{\"streams\":{\"set\":[{\"name\":\"a\x01\"}]}}", BadRequest},
		{"half an escape", `{"streams":{"set":[{"name":"\u00"}]}}`, BadRequest},
		{"half viewers", `{"streams":{"set":[{"viewers":1.5}]}}`, BadRequest},
		{"endless viewers", `{"streams":{"set":[{"viewers":1` + strings.Repeat("0", 30) + `}]}}`, BadRequest},
		{"endless delay", `{"streams":{"set":[{"delay":1e999}]}}`, BadRequest},
		{"NaN", `{"streams":{"set":[{"delay":NaN}]}}`, BadRequest},
		{"leading zeros", `{"streams":{"set":[{"viewers":007}]}}`, BadRequest},
		{"no truth", `{"streams":{"set":[{"source":yes}]}}`, BadRequest},
		{"below 0", `{"streams":{"based":-1}}`, BadRequest},
		{"not JSON where it is passed over", `{"streams":{"new":[1 2]}}`, BadRequest},
		{"a wrong figure", `{"load":"much","streams":{}}`, BadRequest},
		{"too many streams", `{"streams":{"set":[` + strings.Repeat(row, MaxCarried) + `{"name":"live/b"}]}}`, TooBig},
		{"a million streams", `{"streams":{"set":[` + strings.Repeat("{},", 1_000_000) + `{}]}}`, TooBig},
		{"a million gone", `{"streams":{"gone":[` + strings.Repeat(`"",`, 1_000_000) + `""]}}`, TooBig},
		{"a million under another name", `{"Streams":{"set":[` + strings.Repeat("{},", 1_000_000) + `{}]}}`, TooBig},
		{"a million samples", `{"samples":[` + strings.Repeat("{},", 1_000_000) + `{}]}`, TooBig},
		{"set twice", `{"streams":{"set":[],"set":[]}}`, BadRequest},
		{"samples twice", `{"samples":[],"samples":[]}`, BadRequest},
		{"samples of another kind", `{"samples":[0]}`, BadRequest},
		{"an odd time", `{"samples":[{"at":"noon"}]}`, BadRequest},
		{"a million players", `{"players":[` + strings.Repeat("0,", 1_000_000) + `0]}`, TooBig},
		{"too long", `{"node":"` + strings.Repeat("x", MaxHeartbeat) + `"}`, TooBig},
		{"too long beside the streams", `{"node":"` + strings.Repeat("x", maxRest) + `"}`, TooBig},
	} {
		h, err := ParseHeartbeat([]byte(c.text))
		if got := RefusalOf(err); got != c.want || h != nil {
			t.Errorf("%s: %v, %v, want %v", c.name, got, err, c.want)
		}
	}
}

// FuzzHeartbeat feeds what nodes say. What is taken reads the same by encoding/json.
func FuzzHeartbeat(f *testing.F) {
	f.Add(mustJSON(goodHeartbeat(noon)))
	f.Add([]byte(`{"streams":{"based":1,"set":[{"name":"a/b\n","delay":-1.5e-3,"source":false}],"gone":["a/b"]}}`))
	f.Add([]byte(`{"streams":{"x":[{"y":"\"}"},null,1e5]},"samples":[{"from":"a"}],"events":[{"figures":{"a":{}}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHeartbeat(b)
		if err != nil {
			if RefusalOf(err) == NotRefused || h != nil {
				t.Fatalf("%v, %v", h, err)
			}
			return
		}
		if h.Validate(noon) != nil {
			return
		}
		text := mustJSON(h)
		again, err := ParseHeartbeat(text)
		if err != nil {
			t.Fatalf("read %s but not %s: %v", b, text, err)
		}
		var plain Heartbeat
		if err := json.Unmarshal(text, &plain); err != nil {
			t.Fatal(err)
		}
		if one, two := mustJSON(again), mustJSON(&plain); !bytes.Equal(one, two) || !bytes.Equal(one, text) {
			t.Fatalf("%s\n%s\n%s", text, one, two)
		}
		var other Heartbeat
		if err := json.Unmarshal(b, &other); err != nil {
			t.Fatalf("taken, but no JSON: %v", err)
		}
	})
}
