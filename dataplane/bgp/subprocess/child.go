// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// child is a process that speaks. It implements supervisor.Child.
type child struct {
	conn net.Conn
	cmd  *exec.Cmd
	gone chan struct{} // closed when the process has ended
	log  *slog.Logger

	mu    sync.Mutex
	words []string // the last lines that it wrote and that are no log
}

// startChild starts a process with a connection.
func startChild(cmd *exec.Cmd, log *slog.Logger) (*child, error) {
	ours, theirs, err := connection()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	output, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	cmd.ExtraFiles = []*os.File{theirs}
	if log.Enabled(context.Background(), slog.LevelDebug) {
		cmd.Env = append(cmd.Environ(), debugVariable+"=1")
	}
	if err := cmd.Start(); err != nil {
		_ = ours.Close() // nothing was sent
		return nil, err
	}
	c := &child{conn: ours, cmd: cmd, gone: make(chan struct{}), log: log}
	go func() {
		c.listen(output)
		_ = cmd.Wait() // Reason tells how it ended
		close(c.gone)
	}()
	return c, nil
}

// connection gives both ends of one; the second is a file to be inherited.
func connection() (net.Conn, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	near, far := os.NewFile(uintptr(pair[0]), "child"), os.NewFile(uintptr(pair[1]), "parent")
	conn, err := net.FileConn(near)
	_ = near.Close() // conn has a duplicate
	if err != nil {
		_ = far.Close() // nobody has it
		return nil, nil, err
	}
	return conn, far, nil
}

// Conn implements supervisor.Child.
func (c *child) Conn() net.Conn { return c.conn }

// Gone implements supervisor.Child.
func (c *child) Gone() <-chan struct{} { return c.gone }

// Kill implements supervisor.Child.
func (c *child) Kill() { _ = c.cmd.Process.Kill() } // it may have ended

// The bounds of what is taken of what a child writes.
const (
	longestLine = 64 << 10
	lastLines   = 40
)

// listen passes on what the child logs, and keeps the last of what else it writes: a panic's trace, for one.
func (c *child) listen(output io.Reader) {
	r := bufio.NewReaderSize(output, longestLine)
	for {
		line, err := r.ReadSlice('\n')
		if text := strings.TrimSpace(string(line)); text != "" {
			c.hear(text)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

func (c *child) hear(line string) {
	var record map[string]any
	if json.Unmarshal([]byte(line), &record) == nil && record[slog.MessageKey] != nil {
		c.pass(record)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.words = append(c.words, line); len(c.words) > lastLines {
		c.words = slices.Delete(c.words, lastLines/2, lastLines/2+1) // a trace begins with what counts
	}
}

// pass logs what the child logged.
func (c *child) pass(record map[string]any) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(fmt.Sprint(record[slog.LevelKey]))); err != nil {
		level = slog.LevelError
	}
	message := fmt.Sprint(record[slog.MessageKey])
	var attrs []slog.Attr
	for k, v := range record {
		if k != slog.TimeKey && k != slog.LevelKey && k != slog.MessageKey {
			attrs = append(attrs, slog.Any(k, v))
		}
	}
	slices.SortFunc(attrs, func(a, b slog.Attr) int { return strings.Compare(a.Key, b.Key) })
	c.log.LogAttrs(context.Background(), level, message, attrs...)
}

// Memory implements supervisor.Child. It is not known of a process that has ended, nor where there is no /proc.
func (c *child) Memory() (bytes uint64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		if name != "RssAnon" && name != "VmSwap" {
			continue
		}
		if kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64); err == nil {
			bytes += kib << 10
		}
	}
	return bytes
}

// Reason implements supervisor.Child.
func (c *child) Reason() string { return c.cmd.ProcessState.String() }

// LastWords implements supervisor.Child: a panic's trace, for one.
func (c *child) LastWords() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.words, "\n")
}
