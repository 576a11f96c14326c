package main

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/term"

	"millrace/internal/config"
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

// firstUser is who may log in while the settings name nobody.
const firstUser = "operator"

// firstLogin is a password that the router made up.
type firstLogin struct {
	file string // that has it; nobody else but the owner of the router reads it
	user console.User
}

// makeLogin makes up a password if the settings name nobody who could log in, and keeps
// it in a file beside the state. Without a state file there is none, and nil is returned.
func makeLogin(cfg config.Router) (*firstLogin, error) {
	if len(cfg.Console.Users) > 0 || len(cfg.Console.Tokens) > 0 || cfg.StateFile == "" {
		return nil, nil
	}
	l := &firstLogin{file: cfg.StateFile + ".password"}
	b, err := os.ReadFile(l.file)
	password := strings.TrimSpace(string(b))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		password = strings.ToLower(rand.Text()[:20])
		err = os.WriteFile(l.file, []byte(password+"\n"), 0o600)
	case err == nil && password == "":
		err = errors.New("the file is empty: remove it")
	}
	if err != nil {
		return nil, fmt.Errorf("a password for the console: %w", err)
	}
	l.user = console.User{Name: firstUser, Role: console.Operator}
	if l.user.PasswordHash, err = console.Hash(password); err != nil {
		return nil, fmt.Errorf("%s: %w", l.file, err)
	}
	return l, nil
}

// users returns the settings of the console, with the first user while they name nobody.
func (l *firstLogin) users(cfg console.Config) console.Config {
	if l != nil && len(cfg.Users) == 0 && len(cfg.Tokens) == 0 {
		cfg.Users = []console.User{l.user}
	}
	return cfg
}
