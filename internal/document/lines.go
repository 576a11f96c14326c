package document

import "strings"

// Lines says on which line of a file a key or an item of a list stands, by its path:
// "nodes", "nodes[3]", "nodes[3].region".
type Lines map[string]int

// Of returns the line of what is at path, or of the nearest thing around it; 0 when
// there is none.
func (l Lines) Of(path string) int {
	for path != "" {
		if line, ok := l[path]; ok {
			return line
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return 0
}
