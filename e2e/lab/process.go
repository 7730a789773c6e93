// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/internal/lifeline"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

// Process is one process of the shipped binary, which is started, ended and started again.
type Process struct {
	Name   string
	Within []string // a command that runs it from its next Start on, such as unshare; it has to become the process

	t    testing.TB
	bin  string // see Use
	args []string
	in   *netnstest.Namespace // nil: the lab's own
	log  logBuffer

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Use has the process run another binary from its next Start on.
func (p *Process) Use(binary string) { p.bin = binary }

// Start runs the process.
func (p *Process) Start() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		p.t.Fatalf("start %s: it runs already", p.Name)
	}
	// With this umask others may do with a file whatever its writer does not keep from them: see checkPrivate.
	argv := append([]string{"sh", "-c", `umask 0; exec "$0" "$@"`, p.bin}, p.args...)
	argv = append(slices.Clone(p.Within), argv...)
	if p.in != nil {
		argv = append([]string{"nsenter", fmt.Sprintf("--net=/proc/%d/fd/%d", os.Getpid(), p.in.FD())}, argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	if err := lifeline.Start(cmd); err != nil {
		p.t.Fatalf("start %s: %v", p.Name, err)
	}
	done := make(chan struct{})
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		close(done)
	}()
	p.cmd, p.done = cmd, done
}

// Signal sends the process a signal.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		p.t.Fatalf("signal %s: it does not run", p.Name)
	}
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("signal %s: %v", p.Name, err)
	}
}

// Kill ends the process as a power cut ends a process (SIGKILL), and waits until it is gone.
func (p *Process) Kill() { p.end(syscall.SIGKILL) }

// Stop ends the process in order (SIGTERM), and waits until it is gone.
func (p *Process) Stop() { p.end(syscall.SIGTERM) }

func (p *Process) end(s os.Signal) {
	p.t.Helper()
	p.Signal(s)
	p.Ended(testkit.Patience)
}

// Ended waits until the process has ended by itself or after a signal, and gives its exit code (-1: by a signal).
func (p *Process) Ended(within time.Duration) int {
	p.t.Helper()
	p.mu.Lock()
	done := p.done
	p.mu.Unlock()
	select {
	case <-done:
	case <-time.After(within):
		p.t.Fatalf("%s did not end within %s; log:\n%s", p.Name, within, p.Log())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd = nil
	var exit *exec.ExitError
	if errors.As(p.err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// Runs tells whether the process is there.
func (p *Process) Runs() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd != nil
}

// EndedByItself tells whether the process is no longer there although nobody waited for its end, and with which code it ended (-1: by a
// signal). It does not run then, and may be started again.
func (p *Process) EndedByItself() (code int, ended bool) {
	p.t.Helper()
	p.mu.Lock()
	cmd, done := p.cmd, p.done
	p.mu.Unlock()
	if cmd == nil {
		return 0, false
	}
	select {
	case <-done:
		return p.Ended(time.Minute), true // at once
	default:
		return 0, false
	}
}

// Memory is what the process has of its own, without its children, in bytes.
func (p *Process) Memory() (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "RssAnon:" {
			n, err := strconv.Atoi(f[1])
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("%s has no RssAnon", p.Name)
}

// PID is the process id.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// Children are the processes that it started and that run, such as a member's BGP speaker.
func (p *Process) Children() []int { return Children(p.PID()) }

// Children are the processes that a process started and that run.
func Children(pid int) (out []int) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is right
	for _, of := range threads {                                              // children are of the thread that started them
		text, _ := os.ReadFile(of) // a thread may have ended
		for f := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(f); err == nil {
				out = append(out, child)
			}
		}
	}
	return out
}

// Log is what the process has written to standard error.
func (p *Process) Log() string { return p.log.String() }

// Said is how many bytes that were, those counted that are not kept any more.
func (p *Process) Said() int { return p.log.count() }

// logBuffer keeps the newest output of a process.
type logBuffer struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	total int // bytes, those that were cut, too
}

// maxLog bounds what is kept of a process that talks too much.
const maxLog = 4 << 20

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.buf.Len() > maxLog {
		b.buf.Next(maxLog / 2)
		fmt.Fprintln(&b.buf, "… (cut)")
	}
	b.total += len(p)
	return b.buf.Write(p)
}

func (b *logBuffer) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
