// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Member is one member as a process.
type Member struct {
	Name    string
	Address string // loopback address of all its sockets
	DataDir string
	Config  string // path of its controller.yaml

	t   testing.TB
	bin string // see Use
	log logBuffer

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Use has the member run another binary from its next Start on.
func (m *Member) Use(binary string) { m.bin = binary }

// Start runs the member.
func (m *Member) Start() {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd != nil {
		m.t.Fatalf("start %s: it runs already", m.Name)
	}
	cmd := exec.Command(m.bin, "controller", "--config", m.Config)
	cmd.Stdout, cmd.Stderr = &m.log, &m.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		m.t.Fatalf("start %s: %v", m.Name, err)
	}
	done := make(chan struct{})
	m.cmd, m.done = cmd, done
	go func() {
		err := cmd.Wait()
		m.mu.Lock()
		m.err = err
		m.mu.Unlock()
		close(done)
	}()
}

// Signal sends the member a signal.
func (m *Member) Signal(s os.Signal) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd == nil {
		m.t.Fatalf("signal %s: it does not run", m.Name)
	}
	if err := m.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		m.t.Fatalf("signal %s: %v", m.Name, err)
	}
}

// Kill ends the member as a power cut ends a process (SIGKILL), and waits until it is gone.
func (m *Member) Kill() { m.end(syscall.SIGKILL) }

// Stop ends the member in order (SIGTERM), and waits until it is gone.
func (m *Member) Stop() { m.end(syscall.SIGTERM) }

func (m *Member) end(s os.Signal) {
	m.t.Helper()
	m.Signal(s)
	m.Ended(20 * time.Second)
}

// Ended waits until the member has ended by itself or after a signal, and gives its exit code (-1: by a signal).
func (m *Member) Ended(within time.Duration) int {
	m.t.Helper()
	m.mu.Lock()
	done := m.done
	m.mu.Unlock()
	select {
	case <-done:
	case <-time.After(within):
		m.t.Fatalf("%s did not end within %s; log:\n%s", m.Name, within, m.Log())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cmd = nil
	var exit *exec.ExitError
	if errors.As(m.err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// Runs tells whether the process is there.
func (m *Member) Runs() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cmd != nil
}

// PID is the process id.
func (m *Member) PID() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cmd.Process.Pid
}

// Log is what the member has written to standard error.
func (m *Member) Log() string { return m.log.String() }

// Wipe removes the data folder of a member that does not run.
func (m *Member) Wipe() {
	m.t.Helper()
	if err := os.RemoveAll(m.DataDir); err != nil {
		m.t.Fatal(err)
	}
}

// logBuffer keeps the newest output of a process.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
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
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
