// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"fairlead.io/fairlead/internal/lifeline"
)

// process is one program that runs, with its output in a file.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// launch starts a program. The kernel ends it (SIGKILL) if this process ends first.
func launch(log, program string, args ...string) (*process, error) {
	p := &process{name: filepath.Base(program), log: log, done: make(chan struct{})}
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(program, args...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	err = lifeline.Start(p.cmd)
	_ = out.Close() // the program has one of its own
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended stands in its log
		close(p.done)
	}()
	return p, nil
}

// stop asks the program to end, and ends it if it has not after patience.
func (p *process) stop(patience time.Duration) {
	if p == nil || p.ended() {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(patience):
		p.kill()
	}
}

// kill ends the program at once and waits until it has.
func (p *process) kill() {
	if p == nil || p.ended() {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// lastWords are the end of the program's log, for an error message.
func (p *process) lastWords() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-2000):]))
}
