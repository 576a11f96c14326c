// Package page is how simulators report: as text, and as one HTML page that needs
// nothing else.
package page

import (
	_ "embed"
	"flag"
	"fmt"
	"html"
	"io"
	"os"
	"strings"
)

//go:embed style.css
var style string

// Files are where a report goes besides the output.
type Files struct{ Text, HTML string }

// Flags adds the flags that name the files.
func (f *Files) Flags(set *flag.FlagSet) {
	set.StringVar(&f.Text, "text", "", "write the tables here too")
	set.StringVar(&f.HTML, "html", "", "write a page with charts here")
}

// Write writes a report to out and to the files that are asked for.
func (f *Files) Write(out io.Writer, text string, page func() string) error {
	if _, err := io.WriteString(out, text); err != nil {
		return err
	}
	if f.Text != "" {
		if err := os.WriteFile(f.Text, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if f.HTML != "" {
		return os.WriteFile(f.HTML, []byte(page()), 0o644)
	}
	return nil
}

// Begin writes what stands before the first section. own are the rules that the page has
// beyond the common ones: a class such as .with { --of: var(--blue); } gives lines, bars
// and legends of that class a colour, --blue or --orange.
func Begin(b *strings.Builder, title, own string) {
	fmt.Fprintf(b, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n"+
		"<title>%s</title>\n<style>\n%s%s</style>\n<main>\n<h1>%[1]s</h1>\n", html.EscapeString(title), style, own)
}

// End writes what stands after the last section.
func End(b *strings.Builder) { b.WriteString("</main>\n</html>\n") }

// Figure writes one of the figures at the top, which stand in a <div class="figures">.
func Figure(b *strings.Builder, value, name, note string) {
	fmt.Fprintf(b, "<div><strong>%s</strong><span>%s</span><em>%s</em></div>\n",
		html.EscapeString(value), html.EscapeString(name), html.EscapeString(note))
}

// Section begins a section.
func Section(b *strings.Builder, title, note string) {
	fmt.Fprintf(b, "<section>\n<h2>%s</h2>\n", html.EscapeString(title))
	if note != "" {
		fmt.Fprintf(b, "<p class=\"note\">%s</p>\n", html.EscapeString(note))
	}
}
