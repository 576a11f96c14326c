package e2e

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	code := m.Run()
	cleanUp()
	for _, line := range append(missing.report(), failures.report()...) {
		fmt.Println(line)
	}
	os.Exit(code)
}
