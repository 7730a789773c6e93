// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Namespace is a network by its name, as `ip netns` knows it. The zero value is the sandbox's own.
type Namespace string

// folderOfNames is where `ip netns` keeps names.
const folderOfNames = "/var/run/netns"

// Make makes the network, with its loopback up.
func (n Namespace) Make() error {
	if err := ip("netns", "add", string(n)); err != nil {
		return err
	}
	return n.IP("link set lo up")
}

// Remove takes the name away. The network goes with its last process, and with it its ends of all links.
func (n Namespace) Remove() error { return ip("netns", "delete", string(n)) }

// IP runs `ip` with the words of each line in turn.
func (n Namespace) IP(lines ...string) error {
	for _, line := range lines {
		args := strings.Fields(line)
		if n != "" {
			args = append([]string{"-n", string(n)}, args...)
		}
		if err := ip(args...); err != nil {
			return err
		}
	}
	return nil
}

// Command is a program to be run in the network, with the sandbox's own rights and files.
func (n Namespace) Command(name string, args ...string) *exec.Cmd {
	if n == "" {
		return exec.Command(name, args...)
	}
	return exec.Command("ip", append([]string{"netns", "exec", string(n), name}, args...)...)
}

// Run runs a program to its end and gives what it wrote.
func (n Namespace) Run(stdin, name string, args ...string) (string, error) {
	cmd := n.Command(name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("in %s: %s %s: %w: %s", n, name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// Sysctl sets kernel settings of the network, each as "key=value".
func (n Namespace) Sysctl(settings ...string) error {
	_, err := n.Run("", "sysctl", append([]string{"-q", "-w"}, settings...)...)
	return err
}

// Enter takes the calling thread into the network. The caller has locked it, and never unlocks it.
func (n Namespace) Enter() error {
	if n == "" {
		return nil
	}
	fd, err := unix.Open(filepath.Join(folderOfNames, string(n)), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("enter network %s: %w", n, err)
	}
	defer unix.Close(fd)
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network %s: %w", n, err)
	}
	return nil
}

// Do runs f on a thread in the network. Sockets that f opens itself belong there; those that it has other goroutines
// open do not.
func (n Namespace) Do(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		if err := n.Enter(); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
