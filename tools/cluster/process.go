package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// State is what a node's process does.
type State string

// The states of a node.
const (
	Running State = "running"
	Frozen  State = "frozen" // stopped by a signal: its sockets live, and it does not
	Ended   State = "ended"  // by itself
	Killed  State = "killed" // as ordered
)

// endTime is how long a node may take to leave; then it is killed.
const endTime = 5 * time.Second

// process runs one node, again and again. The methods are for one goroutine at a
// time, but for state.
type process struct {
	// Fixed at construction.
	program string
	args    []string
	log     string // file that takes what the node writes

	// Guarded by mu.
	mu     sync.Mutex
	cmd    *exec.Cmd
	state  State
	reason error         // of the end
	done   chan struct{} // closed when cmd has ended
}

// start runs the program; it must not run.
func (p *process) start() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.program, p.args...)
	cmd.Stdout, cmd.Stderr = log, log
	// A group of its own, so that Ctrl-C is for us alone, who end the nodes in order;
	// and should we be killed, so is it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a node: %w (make build makes it)", err)
	}
	done := make(chan struct{})
	p.mu.Lock()
	p.cmd, p.state, p.reason, p.done = cmd, Running, nil, done
	p.mu.Unlock()
	go func() { // ends with the process, for which end and kill wait
		err := cmd.Wait()
		p.mu.Lock()
		if p.state != Killed {
			p.state, p.reason = Ended, err
		}
		p.mu.Unlock()
		close(done)
	}()
	return nil
}

// now returns the state and the process id.
func (p *process) now() (State, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == Running || p.state == Frozen {
		return p.state, p.cmd.Process.Pid
	}
	return p.state, 0
}

// lastLine returns what the program wrote last.
func (p *process) lastLine() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}

// errNotRunning is what cannot be frozen or thawed.
var errNotRunning = errors.New("it does not run")

// kill ends the process without letting it know. One that has ended stays so.
func (p *process) kill() {
	p.mu.Lock()
	done := p.done
	if p.state == Running || p.state == Frozen {
		p.state = Killed
		p.cmd.Process.Kill()
	}
	p.mu.Unlock()
	if done != nil {
		<-done
	}
}

// end asks the process to leave, and kills it when it does not.
func (p *process) end() {
	p.mu.Lock()
	done := p.done
	if p.state == Running {
		p.state = Killed
		p.cmd.Process.Signal(syscall.SIGTERM)
		p.mu.Unlock()
		select {
		case <-done:
		case <-time.After(endTime):
			p.cmd.Process.Kill()
			<-done
		}
		return
	}
	p.mu.Unlock()
	p.kill()
}

// freeze stops the process where it stands, and thaw lets it go on.
func (p *process) freeze() error { return p.signal(syscall.SIGSTOP, Frozen) }

func (p *process) thaw() error { return p.signal(syscall.SIGCONT, Running) }

func (p *process) signal(s syscall.Signal, to State) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != Running && p.state != Frozen {
		return errNotRunning
	}
	if err := p.cmd.Process.Signal(s); err != nil {
		return err
	}
	p.state = to
	return nil
}
