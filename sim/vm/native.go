// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tetratelabs/wazero/sys"
)

// page is what a native process and its world share first; see sim/native/source/world.go.txt.
type page struct {
	function  uint32
	result    uint32
	args      [9]uint64
	monotonic int64
	wall      int64
	step      int64
	looks     uint64
	posted    uint64
	frames    uint64
	taken     uint64
	more      uint64
	seed      [32]byte
	token     byte
}

// What is shared, in bytes: all of it, where calls are that were posted, and where frames are put.
const (
	sharedSize = 8 << 20
	queueAt    = 4 << 20
	inboxAt    = 6 << 20
)

// posted is a call that did not wait for its answer.
type posted struct {
	function uint32
	size     uint32
	looks    uint64
	args     [3]uint64
}

// nativeCalls are the calls of native processes, in the order of sim/native/source/world.go.txt.
var nativeCalls = []call{
	nativePark, nativeFrames, wireDial, wireListen, wireSend, wireClose, wireObserve, randomGet,
	fdClose, fdSync, fdFilestatGet, fdFilestatSetSize, fdPread, fdPwrite, fdRead, fdWrite, fdReaddir, fdSeek,
	fdFdstatSetFlags, fdAllocate, pathOpen, pathCreateDirectory, pathFilestatGet, pathUnlinkFile, pathRemoveDirectory,
	pathRename, nativeFlush, nativePrint,
}

func nativePark(p *Process, a []uint64) uint32 {
	deadline, reading := Forever, a[1] != 0
	if delay := int64(a[0]); delay >= 0 {
		deadline = p.clock.when(time.Duration(delay))
	}
	if deadline > p.spec.World.Now() && !(reading && len(p.inbox) > 0) {
		p.park(deadline, reading)
	}
	return ok
}

func nativeFrames(*Process, []uint64) uint32 {
	return ok // all answers bring them
}

// nativeFlush is asked when no more calls can be posted.
func nativeFlush(*Process, []uint64) uint32 { return ok }

func nativePrint(p *Process, a []uint64) uint32 {
	p.printed(int(a[0]), p.must(a[1], a[2]))
	return ok
}

// loadNative keeps a program for execution.
func (m *Module) loadNative(code []byte) error {
	fd, err := unix.MemfdCreate("fairlead-sim", unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3, all can be executed
		fd, err = unix.MemfdCreate("fairlead-sim", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return fmt.Errorf("load program %x: %w", m.sum[:4], err)
	}
	w := os.NewFile(uintptr(fd), "fairlead-sim")
	if _, err = w.Write(code); err == nil {
		m.native, err = os.Open(fmt.Sprintf("/proc/self/fd/%d", fd)) // what is open for writing cannot be executed
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("load program %x: %w", m.sum[:4], err)
	}
	return nil
}

// liveNative is the life of a native process, within the coroutine. What the machine does to it fails the run: it has no
// part in the world.
func (p *Process) liveNative() (err error) {
	n := &child{}
	defer n.close()
	if err := p.exec(n); err != nil {
		err = fmt.Errorf("start process %s: %w", p.spec.Name, err)
		p.spec.World.Fail(err)
		return err
	}
	p.memory = shared(n.shared)
	defer func() {
		r := recover()
		exit, is := r.(*sys.ExitError)
		switch {
		case is:
			err = exit
		case r != nil && p.bug == nil:
			panic(r)
		}
	}()
	for n.asks() {
		p.posted(n)
		p.looked(n.page.looks)
		n.page.looks = 0
		args := n.page.args
		n.page.result = p.call(nativeCalls[n.page.function], args[:])
		p.tellTime(n.page)
		p.putFrames(n)
		n.answer()
	}
	p.posted(n) // its last words
	return p.ending(n)
}

// exec starts the program.
func (p *Process) exec(n *child) error {
	if err := n.share(); err != nil {
		return err
	}
	_, _ = p.random.Read(n.page.seed[:])
	p.tellTime(n.page)
	err := n.exec(p.spec.Module.native, p.spec.Args, p.spec.Env)
	p.pid = n.pid
	return err
}

// ending is how a process ended that asks no more.
func (p *Process) ending(n *child) error {
	status, err := n.wait()
	switch {
	case err == nil && status.Signaled():
		err = fmt.Errorf("%v; is there memory enough", status.Signal())
		fallthrough
	case err != nil:
		err = fmt.Errorf("process %s was ended by this machine: %w", p.spec.Name, err)
		p.spec.World.Fail(err)
		return err
	case status.ExitStatus() != 0:
		return ExitError{status.ExitStatus()}
	}
	return nil
}

// posted carries out what the process posted since it was answered.
func (p *Process) posted(n *child) {
	looks := uint64(0)
	for at := uint64(queueAt); at < queueAt+n.page.posted; {
		c := (*posted)(unsafe.Pointer(&n.shared[at]))
		p.looked(c.looks - looks)
		looks = c.looks
		p.call(nativeCalls[c.function], c.args[:])
		at += uint64(c.size)
	}
	n.page.posted = 0
	n.page.looks -= looks
}

// looked has the world's time pass that looks at clocks take: they are calls, too.
func (p *Process) looked(times uint64) {
	if p.calls += int(times); p.calls > p.spec.Limits.Calls {
		p.spins()
	}
	if p.fuse > 0 {
		if p.fuse -= int(times); p.fuse <= 0 {
			p.die()
		}
	}
	p.spec.World.Pass(callTime * time.Duration(times))
}

// putFrames puts frames where the process finds them, once it has taken those that were there.
func (p *Process) putFrames(n *child) {
	if n.page.taken == n.page.frames {
		n.page.taken, n.page.frames = 0, uint64(p.takeFrames(n.shared[inboxAt:]))
	}
	n.page.more = uint64(len(p.inbox))
}

// tellTime has the process know what its clocks show.
func (p *Process) tellTime(to *page) {
	to.monotonic = int64(p.clock.Monotonic())
	to.wall = p.clock.Wall().UnixNano()
	to.step = int64(scale(callTime, million+p.clock.drift, million))
}
