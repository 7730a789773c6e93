// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Process is a program that is started, ended and started again. One goroutine uses it.
type Process struct {
	Name    string // in errors
	Network Namespace
	Argv    []string
	Env     []string // added to ours
	Log     string   // file that its output is added to
	// Boot, if set, is a file that the program reads in place of the kernel's boot id: a machine of its own.
	Boot string

	cmd  *exec.Cmd
	done chan struct{}
}

// asBoot runs the rest of its arguments with another boot id.
const asBoot = `mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"`

// Start starts the program.
func (p *Process) Start() error {
	if p.Running() {
		return fmt.Errorf("start %s: it runs already", p.Name)
	}
	argv := p.Argv
	if p.Boot != "" {
		argv = append([]string{"unshare", "--mount", "sh", "-c", asBoot, p.Boot}, argv...)
	}
	cmd := p.Network.Command(argv[0], argv[1:]...)
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), p.Env...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	done := make(chan struct{})
	p.cmd, p.done = cmd, done
	go func() {
		defer close(done)
		_ = cmd.Wait() // how it ended is in its log, and in the process state
	}()
	return nil
}

// Running tells whether the program was started and has not ended.
func (p *Process) Running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// patience is how long the kernel may take to end a program.
const patience = 20 * time.Second

// Kill ends the program as a power cut does (SIGKILL), and waits until it is gone. It does nothing if none runs.
func (p *Process) Kill() error {
	if !p.Running() {
		return nil
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end %s: %w", p.Name, err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("end %s: it still runs %s after SIGKILL", p.Name, patience)
	}
}

// LastWords are the end of the program's log.
func (p *Process) LastWords() string {
	text, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	const few = 600
	return strings.TrimSpace(string(text[max(0, len(text)-few):]))
}
