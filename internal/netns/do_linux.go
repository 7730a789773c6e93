// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// Do calls f inside the namespace that the file descriptor refers to, and gives f's error; 0 is the process's own.
// Goroutines that f starts run outside.
//
// Errors: those of f, or that the namespace cannot be entered.
func Do(fd int, f func() error) error {
	if fd == 0 {
		return f()
	}
	done := make(chan error, 1)
	go func() {
		// Never unlocked: the thread ends with the goroutine, so that no other goroutine ever runs inside.
		runtime.LockOSThread()
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter network namespace: %w", err)
			return
		}
		done <- f()
	}()
	return <-done
}

// New makes a network namespace and gives a file descriptor of it, which the caller closes. The namespace ends with
// the last descriptor, socket and process in it.
func New() (fd int, err error) {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // as in Do
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("make network namespace: %w", err)
			return
		}
		var err error
		if fd, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			err = fmt.Errorf("make network namespace: %w", err)
		}
		done <- err
	}()
	err = <-done
	return fd, err
}
