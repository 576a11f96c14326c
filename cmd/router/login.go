package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"millrace/internal/console"
	"millrace/internal/run"
)

// hashPassword prints what console.users takes for a password, which it reads from the
// terminal without showing it, or from a pipe.
func hashPassword(args []string, stdin *os.File, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		return run.Refuse("router", stderr, errors.New("hash-password takes no arguments: the password is asked for, because others can see command lines"))
	}
	password, err := readPassword(stdin, stderr)
	if err != nil {
		return run.Refuse("router", stderr, err)
	}
	hash, err := console.Hash(password)
	if err != nil {
		return run.Refuse("router", stderr, err)
	}
	fmt.Fprintln(stdout, hash)
	return run.OK
}

// readPassword reads a password, twice where it cannot be seen.
func readPassword(stdin *os.File, stderr io.Writer) (string, error) {
	if !term.IsTerminal(int(stdin.Fd())) {
		line, err := bufio.NewReader(io.LimitReader(stdin, 1024)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read the password: %w", err)
		}
		return strings.TrimRight(line, "\r\n"), nil
	}
	var typed [2]string
	for i, prompt := range []string{"Password: ", "Once more: "} {
		fmt.Fprint(stderr, prompt)
		b, err := term.ReadPassword(int(stdin.Fd()))
		fmt.Fprintln(stderr)
		if err != nil {
			return "", fmt.Errorf("read the password: %w", err)
		}
		typed[i] = string(b)
	}
	if typed[0] != typed[1] {
		return "", errors.New("the two passwords differ: try again")
	}
	return typed[0], nil
}

// newToken prints a token for a program, and what console.tokens takes for it.
func newToken(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		return run.Refuse("router", stderr, errors.New("new-token takes no arguments: it makes up the token"))
	}
	token, hash := console.NewToken()
	fmt.Fprintf(stdout, "token: %s\nhash:  %s\n", token, hash)
	return run.OK
}
