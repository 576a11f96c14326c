package control

import (
	"bytes"
	"fmt"
)

// ordersShelf keeps the last orders on disk, in one file: the URL they came from, their
// token, each on a line, and the orders as they were sent.
type ordersShelf struct {
	path string
	node string // whose orders they are
}

// load returns the orders that are kept, the URL that they came from, and their token.
func (s ordersShelf) load() (*Orders, string, string, error) {
	text, err := readFile(s.path, MaxOrders+maxURL+maxToken)
	if err != nil {
		return nil, "", "", err
	}
	from, rest, ok := bytes.Cut(text, []byte("\n"))
	token, document, ok2 := bytes.Cut(rest, []byte("\n"))
	if !ok || !ok2 || len(from) > maxURL || len(token) > maxToken || len(token) == 0 {
		return nil, "", "", fmt.Errorf("%s holds no orders", s.path)
	}
	o, err := ParseOrders(document, s.node)
	if err != nil {
		return nil, "", "", fmt.Errorf("%s: %w", s.path, err)
	}
	return o, string(from), string(token), nil
}

// save writes orders as they were sent.
func (s ordersShelf) save(document []byte, from, token string) error {
	return writeFile(s.path, []byte(from), []byte("\n"), []byte(token), []byte("\n"), document)
}
