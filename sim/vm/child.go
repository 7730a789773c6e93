// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// child is a process of this machine that is one of a world. It asks by a byte in one pipe, and goes on at a byte in
// another; what it asks, and what it is told, is in memory that both share.
type child struct {
	pid    int // 0: none runs
	shared []byte
	page   *page
	fds    []int // to be closed
	in     int   // where it is told to go on
	out    int   // where it asks
	given  []uintptr
}

// share makes what both ends share.
func (c *child) share() error {
	memory, err := unix.MemfdCreate("fairlead-sim-shared", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("share memory: %w", err)
	}
	c.fds = append(c.fds, memory)
	if err := unix.Ftruncate(memory, sharedSize); err != nil {
		return fmt.Errorf("share memory: %w", err)
	}
	if c.shared, err = unix.Mmap(memory, 0, sharedSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return fmt.Errorf("share memory: %w", err)
	}
	c.page = (*page)(unsafe.Pointer(&c.shared[0]))
	var pipes [2][2]int
	for k := range pipes {
		if err := unix.Pipe2(pipes[k][:], unix.O_CLOEXEC); err != nil {
			return fmt.Errorf("make a pipe: %w", err)
		}
		c.fds = append(c.fds, pipes[k][:]...)
	}
	c.in, c.out = pipes[0][1], pipes[1][0]
	c.given = []uintptr{uintptr(memory), uintptr(pipes[0][0]), uintptr(pipes[1][1])}
	return nil
}

// runtimeSettings are of Go's runtime: one thread, no signals, and garbage that is collected late, since the heaps of worlds
// are small and there is more memory than time.
var runtimeSettings = []string{"GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1", "GOGC=400"}

// exec starts a program, which finds what is shared behind its standard streams; these lead nowhere.
func (c *child) exec(program *os.File, args, env []string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	c.pid, err = syscall.ForkExec(fmt.Sprintf("/proc/self/fd/%d", program.Fd()), args, &syscall.ProcAttr{
		Env:   append(slices.Clone(runtimeSettings), env...),
		Files: append([]uintptr{null.Fd(), null.Fd(), null.Fd()}, c.given...),
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}, // one that computes would not notice that its world is gone
	})
	for _, fd := range c.given {
		_ = unix.Close(int(fd)) // so that the pipes end with the child
	}
	c.fds = []int{c.in, c.out}
	return err
}

// asks waits for a question; false: the process has ended.
func (c *child) asks() bool {
	var token [1]byte
	for {
		n, err := unix.Read(c.out, token[:])
		if !errors.Is(err, unix.EINTR) {
			return n == 1
		}
	}
}

// answer has the process go on. That it has ended shows when it asks no more.
func (c *child) answer() {
	token := [1]byte{1}
	for {
		if _, err := unix.Write(c.in, token[:]); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// wait gives how it ended.
func (c *child) wait() (status unix.WaitStatus, err error) {
	for {
		_, err = unix.Wait4(c.pid, &status, 0, nil)
		if !errors.Is(err, unix.EINTR) {
			c.pid = 0
			return status, err
		}
	}
}

// close ends it, wherever it is.
func (c *child) close() {
	if c.pid > 0 {
		_ = unix.Kill(c.pid, unix.SIGKILL)
		_, _ = c.wait()
	}
	for _, fd := range c.fds {
		_ = unix.Close(fd)
	}
	if c.shared != nil {
		_ = unix.Munmap(c.shared)
	}
}

// shared is the memory that a process shares, as its calls see it.
type shared []byte

// Read gives a part of it; false: there is none such.
func (s shared) Read(at, size uint32) ([]byte, bool) {
	if uint64(at)+uint64(size) > uint64(len(s)) {
		return nil, false
	}
	return s[at : at+size : at+size], true
}

// WriteString writes text.
func (s shared) WriteString(at uint32, text string) bool {
	to, good := s.Read(at, uint32(len(text)))
	copy(to, text)
	return good
}

// WriteUint32Le writes a number.
func (s shared) WriteUint32Le(at, v uint32) bool {
	to, good := s.Read(at, 4)
	if good {
		binary.LittleEndian.PutUint32(to, v)
	}
	return good
}

// WriteUint64Le writes a number.
func (s shared) WriteUint64Le(at uint32, v uint64) bool {
	to, good := s.Read(at, 8)
	if good {
		binary.LittleEndian.PutUint64(to, v)
	}
	return good
}

// Size is how much there is, in bytes.
func (s shared) Size() uint32 { return uint32(len(s)) }
