// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
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
	fd, err := unix.MemfdCreate("fairlead-sim", unix.MFD_CLOEXEC|0x10)
	if err != nil {
		return fmt.Errorf("load program %x: %w", m.sum[:4], err)
	}
	w := os.NewFile(uintptr(fd), "fairlead-sim")
	if _, err = w.Write(code); err != nil {
		return err
	}
	m.native, err = os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
	return errors.Join(err, w.Close())
}

// child is a process of this machine.
type child struct {
	pid      int
	shared   []byte
	page     *page
	question *os.File // read
	answer   *os.File // write
}

// liveNative is the life of a native process, within the coroutine.
func (p *Process) liveNative() (err error) {
	n, err := p.exec()
	if err != nil {
		return fmt.Errorf("start process %s: %w", p.spec.Name, err)
	}
	p.memory, p.child = shared(n.shared), n
	defer n.close()
	defer func() {
		if r := recover(); r != nil {
			exit, is := r.(*sys.ExitError)
			if !is && p.bug == nil {
				panic(r)
			}
			err = exit
		}
	}()
	for {
		asked, err := n.read()
		if err != nil {
			return err
		}
		p.posted(n)
		if !asked {
			return n.wait()
		}
		p.looked(n.page.looks)
		n.page.looks = 0
		args := n.page.args
		n.page.result = p.call(nativeCalls[n.page.function], args[:])
		p.tellTime(n.page)
		p.putFrames(n)
		if err := n.reply(); err != nil {
			return n.wait()
		}
	}
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

func (p *Process) exec() (*child, error) {
	fd, err := unix.MemfdCreate("fairlead-sim-shared", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, sharedSize); err != nil {
		return nil, err
	}
	all, err := unix.Mmap(fd, 0, sharedSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	n := &child{shared: all, page: (*page)(unsafe.Pointer(&all[0]))}
	_, _ = p.random.Read(n.page.seed[:])
	p.tellTime(n.page)
	var in, out [2]int
	if err := unix.Pipe2(in[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	if err := unix.Pipe2(out[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	n.answer, n.question = os.NewFile(uintptr(in[1]), "answer"), os.NewFile(uintptr(out[0]), "question")
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(null)
	defer unix.Close(in[0])
	defer unix.Close(out[1])
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, _, _ := unix.RawSyscall(unix.SYS_PERSONALITY, 0x0040000, 0, 0) // ADDR_NO_RANDOMIZE
	defer unix.RawSyscall(unix.SYS_PERSONALITY, before, 0, 0)
	n.pid, err = syscall.ForkExec(fmt.Sprintf("/proc/self/fd/%d", p.spec.Module.native.Fd()), p.spec.Args, &syscall.ProcAttr{
		Env:   append([]string{"GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1"}, p.spec.Env...),
		Files: []uintptr{uintptr(null), uintptr(null), uintptr(null), uintptr(fd), uintptr(in[0]), uintptr(out[1])},
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}, // one that computes would not notice that its world is gone
	})
	return n, err
}

// read waits for a question; false: the process has ended.
func (n *child) read() (bool, error) {
	var one [1]byte
	for {
		k, err := unix.Read(int(n.question.Fd()), one[:])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return false, err
		default:
			return k == 1, nil
		}
	}
}

func (n *child) reply() error {
	for {
		_, err := unix.Write(int(n.answer.Fd()), []byte{1})
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// wait gives how it ended.
func (n *child) wait() error {
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(n.pid, &status, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		n.pid = 0
		if err != nil {
			return err
		}
		break
	}
	switch {
	case status.Signaled():
		return fmt.Errorf("ended by signal %v", status.Signal())
	case status.ExitStatus() != 0:
		return ExitError{status.ExitStatus()}
	}
	return nil
}

func (n *child) close() {
	if n.pid != 0 {
		_ = unix.Kill(n.pid, unix.SIGKILL)
		_ = n.wait()
	}
	_ = n.question.Close()
	_ = n.answer.Close()
	_ = unix.Munmap(n.shared)
}

// shared is the memory that a process shares, as its calls see it.
type shared []byte

func (s shared) Read(at, size uint32) ([]byte, bool) {
	if uint64(at)+uint64(size) > uint64(len(s)) {
		return nil, false
	}
	return s[at : at+size : at+size], true
}

func (s shared) WriteString(at uint32, text string) bool {
	to, good := s.Read(at, uint32(len(text)))
	copy(to, text)
	return good
}

func (s shared) WriteUint32Le(at, v uint32) bool {
	to, good := s.Read(at, 4)
	if good {
		binary.LittleEndian.PutUint32(to, v)
	}
	return good
}

func (s shared) WriteUint64Le(at uint32, v uint64) bool {
	to, good := s.Read(at, 8)
	if good {
		binary.LittleEndian.PutUint64(to, v)
	}
	return good
}

func (s shared) Size() uint32 { return uint32(len(s)) }
