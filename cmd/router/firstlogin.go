package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"millrace/internal/config"
	"millrace/internal/console"
	"millrace/internal/store"
)

// firstUser is who may log in while the settings name nobody.
const firstUser = "operator"

// firstLogin is a password that a router made up, since its settings name nobody. One
// that is alone keeps it in a file beside its state. Routers that share a Redis share
// the password of whoever was first: its hash is a document there, which the console
// does not show, and the file is beside the state of that router alone.
type firstLogin struct {
	// Fixed at construction.
	file string // has the password, if it is that of this router; empty without a state file

	// Guarded by mu.
	mu   sync.Mutex
	cfg  console.Config // as the settings have it
	user *console.User  // nil while it is not known

	// Owned by shareLogin.
	hash string // of the password in the file, once it was needed
	told string // the hash that the log told of
}

// makeLogin returns nil if the settings name somebody who can log in. A router that is
// alone has its password then, one of several when it has asked Redis.
func makeLogin(cfg config.Router) (*firstLogin, error) {
	if len(cfg.Console.Users) > 0 || len(cfg.Console.Tokens) > 0 {
		return nil, nil
	}
	l := &firstLogin{cfg: cfg.Console}
	if cfg.StateFile != "" {
		l.file = cfg.StateFile + ".password"
	}
	if cfg.Redis.URL != "" {
		return l, nil
	}
	hash, err := l.own()
	if err != nil {
		return nil, err
	}
	l.user = operatorWith(hash)
	return l, nil
}

func operatorWith(hash string) *console.User {
	return &console.User{Name: firstUser, Role: console.Operator, PasswordHash: hash}
}

// read returns the password in the file, fs.ErrNotExist if there is none.
func (l *firstLogin) read() (string, error) {
	if l.file == "" {
		return "", fs.ErrNotExist
	}
	b, err := os.ReadFile(l.file)
	password := strings.TrimSpace(string(b))
	if err == nil && password == "" {
		err = fmt.Errorf("%s is empty: remove it", l.file)
	}
	return password, err
}

// own returns a hash of the password in the file, which is made up if there is none.
func (l *firstLogin) own() (string, error) {
	var hash string
	password, err := l.read()
	if errors.Is(err, fs.ErrNotExist) {
		if password, hash, err = console.NewPassword(); err == nil {
			err = os.WriteFile(l.file, []byte(password+"\n"), 0o600)
		}
	} else if err == nil {
		if hash, err = console.Hash(password); err != nil {
			err = fmt.Errorf("%s: %w", l.file, err)
		}
	}
	if err != nil {
		return "", fmt.Errorf("a password for the console: %w", err)
	}
	return hash, nil
}

// users returns the settings of the console, with the first user while they name nobody.
func (l *firstLogin) users() console.Config {
	cfg := l.cfg
	if l.user != nil && len(cfg.Users) == 0 && len(cfg.Tokens) == 0 {
		cfg.Users = []console.User{*l.user}
	}
	return cfg
}

// setConsole puts settings of the console in force.
func (r *router) setConsole(cfg console.Config) error {
	l := r.login
	if l == nil {
		return r.console.Reload(cfg)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cfg = cfg
	return r.console.Reload(l.users())
}

// setLogin has the console know the user with that hash.
func (r *router) setLogin(hash string) error {
	l := r.login
	l.mu.Lock()
	defer l.mu.Unlock()
	l.user = operatorWith(hash)
	return r.console.Reload(l.users())
}

const (
	// keyLogin is the document that has the hash; its author is the router that made it
	// up, and the comment says where the password is.
	keyLogin = "first-login"
	// loginAgain is how soon a store is asked again that could not be.
	loginAgain = time.Second
)

// shareLogin keeps to the password that the routers of one Redis share, until ctx ends.
func (r *router) shareLogin(ctx context.Context) error {
	changes, err := r.state.Watch(ctx)
	if err != nil {
		return fmt.Errorf("a password for the console: %w", err)
	}
	told := ""
	for {
		var again <-chan time.Time
		if err := r.takeLogin(ctx); err != nil {
			again = time.After(loginAgain)
			if text := err.Error(); !errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil && text != told {
				r.log.Error("no password for the console could be agreed on with the other routers", "err", err)
				told = text
			}
		}
		for known := true; known; {
			select {
			case c := <-changes:
				known = c != store.Change{Kind: store.Documents, Key: keyLogin}
			case <-again:
				known = false
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// takeLogin takes the password that is shared, or shares that of this router if there is
// none. As long as Redis is away, and nothing is known of another, its own is good.
func (r *router) takeLogin(ctx context.Context) error {
	l := r.login
	d, err := r.state.Current(ctx, keyLogin)
	switch {
	case err == nil && !(d.Name == r.id && l.lost()):
		return r.adoptLogin(d)
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return err
	case l.file == "":
		return nil // it could tell nobody: another router will
	}
	if l.hash == "" || l.lost() {
		if l.hash, err = l.own(); err != nil {
			return err
		}
	}
	file, err := filepath.Abs(l.file)
	if err != nil {
		return err
	}
	host, _ := os.Hostname() // without one the name of the router must do
	d, err = r.state.Edit(ctx, keyLogin, d.Version, []byte(l.hash), store.Author{Name: r.id, Comment: file + " on " + host})
	if _, faster := errors.AsType[*store.ConflictError](err); faster {
		return r.takeLogin(ctx)
	}
	if err != nil {
		return errors.Join(err, r.setLogin(l.hash))
	}
	return r.adoptLogin(d)
}

// lost reports whether the file with the password is not there.
func (l *firstLogin) lost() bool {
	_, err := l.read()
	return l.file != "" && errors.Is(err, fs.ErrNotExist)
}

// adoptLogin has the password that is shared good here, and no other.
func (r *router) adoptLogin(d store.Document) error {
	l, hash := r.login, string(d.Body)
	if err := r.setLogin(hash); err != nil {
		return fmt.Errorf("the one that %s made up: %w", d.Name, err)
	}
	if l.told == hash {
		return nil
	}
	l.told = hash
	password, err := l.read()
	if err == nil && console.Matches(hash, password) {
		r.log.Warn(madeUp, "user", firstUser, "password_in", l.file)
		return nil
	}
	if err == nil { // nobody should try what is good nowhere
		err = os.Remove(l.file)
	}
	r.log.Warn("the settings name nobody who may log in to the console: the password that another router made up is good here, too; set console.users (router hash-password)",
		"user", firstUser, "made_up_by", d.Name, "password_in", d.Comment)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// madeUp is what operators are told of a password that this router made up.
const madeUp = "the settings name nobody who may log in to the console: one password was made up; set console.users (router hash-password)"
