// SPDX-License-Identifier: Apache-2.0

// Package socktest gives tests a cgroup of their own, at which programs may resolve what its sockets dial, and a place for their pins.
// It needs Linux, root, and cgroup v2.
package socktest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/internal/mounttest"
	"fairlead.io/fairlead/internal/testkit"
)

// Lab is a cgroup, and a folder on a bpffs that is not there yet.
type Lab struct {
	Cgroup string
	Pins   string

	t testing.TB
}

// New makes them; they go with the test, and its processes have to be gone by then.
func New(t testing.TB) *Lab {
	t.Helper()
	testkit.NotFast(t, "loads programs into the kernel")
	cgroup, err := os.MkdirTemp(mount(t), "fairlead-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(cgroup) })
	bpf := filepath.Join(t.TempDir(), "bpf")
	if err := os.Mkdir(bpf, 0o700); err != nil {
		t.Fatal(err)
	}
	mounttest.Mount(t, "bpf", bpf, "")
	return &Lab{cgroup, filepath.Join(bpf, "fairlead"), t}
}

// Below makes a cgroup below that of the lab, as deep as the path says. Its processes have to be gone when the test ends.
func (l *Lab) Below(path string) *Lab {
	l.t.Helper()
	at := l.Cgroup
	for folder := range strings.SplitSeq(path, "/") {
		at = filepath.Join(at, folder)
		if err := os.Mkdir(at, 0o755); err != nil && !os.IsExist(err) {
			l.t.Fatal(err)
		}
		l.t.Cleanup(func() { _ = os.Remove(at) })
	}
	return &Lab{at, l.Pins, l.t}
}

// Number is the cgroup's, which programs know it by.
func (l *Lab) Number() uint64 {
	l.t.Helper()
	var s syscall.Stat_t
	if err := syscall.Stat(l.Cgroup, &s); err != nil {
		l.t.Fatal(err)
	}
	return s.Ino
}

// mount is where cgroup v2 is.
func mount(t testing.TB) string {
	for _, path := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(filepath.Join(path, "cgroup.controllers")); err == nil {
			return path
		}
	}
	t.Fatal("cgroup v2 is mounted nowhere")
	return ""
}

// Join has a command that is not started yet run in the cgroup.
func (l *Lab) Join(c *exec.Cmd) {
	l.t.Helper()
	folder, err := os.Open(l.Cgroup)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = folder.Close() })
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(folder.Fd())}
}

// Bash runs a script in the cgroup, for half a minute at most, and gives what it says on both of its outputs.
func (l *Lab) Bash(script string) string {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-c", script)
	l.Join(c)
	out, _ := c.CombinedOutput() // a script that fails says why
	return strings.TrimSpace(string(out))
}
