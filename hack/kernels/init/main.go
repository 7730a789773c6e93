// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Init is the first process of a machine that runs one test binary and turns itself off: see ../run.sh. It mounts what programs at
// sockets need, loads the kernel's modules that lie in /modules, and says how the tests ended.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	code, err := run()
	if err != nil {
		fmt.Println("init:", err)
		code = 1
	}
	fmt.Printf("\ninit: tests ended with %d\n", code)
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF) // where it fails the kernel panics, and the machine ends all the same
}

func run() (code int, err error) {
	mounts := []struct{ kind, at string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"}, {"tmpfs", "/run"}, {"cgroup2", "/sys/fs/cgroup"}, {"bpf", "/sys/fs/bpf"},
	}
	for _, m := range mounts {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return 0, err
		}
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
			return 0, fmt.Errorf("mounting %s at %s: %w", m.kind, m.at, err)
		}
	}
	if err := loadModules("/modules"); err != nil {
		return 0, err
	}
	if out, err := exec.Command("/sbin/ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("lo: %w: %s", err, out)
	}
	words, err := os.ReadFile("/arguments")
	if err != nil {
		return 0, err
	}
	test := exec.Command("/test", strings.Fields(string(words))...)
	test.Dir, test.Stdout, test.Stderr = "/src", os.Stdout, os.Stdout
	test.Env = append(os.Environ(), "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp")
	err = test.Run()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		return ended.ExitCode(), nil
	}
	return 0, err
}

// loadModules loads all modules of a folder, in the order of their names.
func loadModules(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.ko"))
	if err != nil {
		return err
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		_ = f.Close() // it was only read
		if err != nil && !errors.Is(err, syscall.EEXIST) {
			return fmt.Errorf("loading %s: %w", file, err)
		}
	}
	return nil
}
