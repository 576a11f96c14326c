package auth

import (
	"errors"
	"reflect"
	"testing"

	"millrace/internal/session"
)

func TestPushQuery(t *testing.T) {
	want := Mark{Stream: "live/a", Node: "edge-1", Via: []string{"edge-0", "edge-1"}, Purpose: Push, Owner: "0a1b2c", Epoch: 1_800_000_000_123}
	got, sign, ok, err := ParsePush("live/a", "key=x&"+PushQuery(want, "123:abc"))
	if err != nil || !ok || sign != "123:abc" || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %q, %v, %v", got, sign, ok, err)
	}
	if _, _, ok, err := ParsePush("live/a", "key=secret&expires=1"); ok || err != nil {
		t.Errorf("a publisher is taken for a node: %v, %v", ok, err)
	}
}

func TestParsePushRefuses(t *testing.T) {
	for _, q := range []string{
		"millrace_via=", "millrace_via=a&millrace_epoch=1", "millrace_via=a%20b", "millrace_via=a,,b", "millrace_via=a&millrace_epoch=x",
		"millrace_via=a&millrace_epoch=-1", "millrace_via=a&millrace_owner=%41",
		"millrace_via=a&millrace_owner=x&millrace_epoch=9223372036854775807", // there would be no newer one
	} {
		_, _, ok, err := ParsePush("live/a", q)
		var denied *Denied
		if ok || !errors.As(err, &denied) || denied.Reason != session.BadRequest {
			t.Errorf("%q: %v, %v", q, ok, err)
		}
	}
}

func FuzzParsePush(f *testing.F) {
	f.Add("millrace_via=a,b&millrace_owner=x&millrace_epoch=1&millrace_sign=1:ab")
	f.Add("millrace_via=a&millrace_owner=%41%")
	f.Fuzz(func(t *testing.T, q string) {
		m, sign, ok, err := ParsePush("live/a", q)
		if !ok || err != nil {
			return
		}
		again, _, ok, err := ParsePush("live/a", PushQuery(m, sign))
		if !ok || err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("%q: %+v comes back as %+v, %v, %v", q, m, again, ok, err)
		}
	})
}
