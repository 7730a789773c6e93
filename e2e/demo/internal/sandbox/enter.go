// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Environment of the program inside.
const (
	inside = "FAIRLEAD_SANDBOX"     // set when the program runs inside
	folder = "FAIRLEAD_SANDBOX_DIR" // for its files; removed with it
)

// ErrNotRoot is the error of Enter without the rights to make namespaces.
var ErrNotRoot = errors.New("network namespaces need root; run it as root")

// Inside tells whether this program runs in a sandbox already.
func Inside() bool { return os.Getenv(inside) != "" }

// Dir is a folder for the files of the program inside. It is removed when the program ends.
func Dir() string { return os.Getenv(folder) }

// Enter runs this program once more, with its arguments, in a sandbox, hands on SIGINT and SIGTERM, and gives its exit
// code. Inside, it prepares the sandbox and gives ran = false.
//
// Errors: ErrNotRoot, or the kernel refuses a namespace.
func Enter() (code int, ran bool, err error) {
	if Inside() {
		return 0, false, furnish()
	}
	if os.Geteuid() != 0 {
		return 0, false, ErrNotRoot
	}
	dir, err := os.MkdirTemp("", "fairlead-sandbox-")
	if err != nil {
		return 0, false, err
	}
	defer os.RemoveAll(dir)
	// The kernel ends the inner program with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), inside+"=1", folder+"="+dir, "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL,
		Setpgid:    true, // signals of a terminal come through here, once
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, false, fmt.Errorf("make namespaces: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, pidFile), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644); err != nil {
		return 0, true, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				_ = cmd.Process.Signal(s) // it may have ended just now
			case <-ended:
				return
			}
		}
	}()
	err = cmd.Wait()
	close(ended)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, true, err
	}
	return cmd.ProcessState.ExitCode(), true, nil
}

// furnish makes the mounts that programs expect, visible in here alone.
func furnish() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts to ourselves: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	return ip("link", "set", "lo", "up")
}

// pidFile, in Dir, has the id of the program inside as those outside know it.
const pidFile = "pid"

// OuterPID is the id of the program inside as those outside know it, so that they can look in.
func OuterPID() (string, error) {
	text, err := os.ReadFile(filepath.Join(Dir(), pidFile))
	return string(text), err
}
