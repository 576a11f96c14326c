package runtest

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Scrape reads the metrics of a program as Prometheus does and returns the value of each
// series. At least so many of them must be ours, which are named as the pattern says,
// have a help text, and end in _total if and only if they are counters.
func Scrape(t *testing.T, url string, named *regexp.Regexp, least int) map[string]string {
	t.Helper()
	status, text := Get(t, url)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	ours := 0
	for name, f := range families {
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		ours++
		if !named.MatchString(name) {
			t.Errorf("%s is not named millrace_<package>_<what>_<unit>", name)
		}
		if counter := f.GetType().String() == "COUNTER"; counter != strings.HasSuffix(name, "_total") || f.GetHelp() == "" {
			t.Errorf("%s: counter %v, but a name ends in _total if and only if it is one; help %q", name, counter, f.GetHelp())
		}
	}
	if ours < least {
		t.Errorf("only %d families of ours", ours)
	}
	values := map[string]string{}
	for line := range strings.Lines(text) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if _, twice := values[series]; twice {
			t.Errorf("%s comes twice", series)
		}
		values[series] = value
	}
	return values
}
