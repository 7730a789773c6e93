// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"fairlead.io/fairlead/sim/disk"
	"fairlead.io/fairlead/sim/engine"
)

// Forever is a time that does not come.
const Forever = time.Duration(math.MaxInt64)

// ErrKilled is how a process ends that was killed, by Kill or by Fuse.
var ErrKilled = errors.New("killed")

// ExitError is how a process ended that exited with another code than 0. Go's runtime exits with 2 after a panic.
type ExitError struct{ Code int }

// Error implements error.
func (e ExitError) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// Spec is what a process is made of. All but World, Name and Module may be left out.
type Spec struct {
	World  *engine.World
	Name   string
	Life   int // counts the starts of a name: name and life choose the process's randomness
	Module *Module
	Args   []string // the first is the program's name
	Env    []string // KEY=VALUE
	Disk   *disk.Disk
	Clock  *Clock
	Wire   Wire
	Limits Limits
	Usage  *Usage // has counted in it what the process does

	Observe func(kind uint32, data []byte) // a fact that the process reports; data is the callee's
	Line    func(stream int, line string)  // written to stdout (1) or stderr (2), without its newline
	Ended   func(err error)                // once, whatever the reason; nil after exit with 0
}

// Process is one life of a process. It belongs to its world's goroutine.
type Process struct {
	spec   Spec
	clock  *Clock
	disk   *disk.Disk
	random *rand.ChaCha8

	resume func() (struct{}, bool) // runs it until it parks; false: it has ended
	drop   func()                  // ends it where it is parked
	yield  func(struct{}) bool     // parks it; false: it is dropped
	timer  *engine.Timer           // of the next resumption; nil while it runs, and when nothing is planned
	memory memory
	pid    int // of this machine; 0 for none

	deadline time.Duration // while parked: of the world
	reading  bool          // while parked: a frame ends it
	frozen   time.Duration // not to be resumed before

	running, killed, ended bool
	failure                error // how the guest ended
	bug                    any   // a panic of the host's side
	calls                  int   // of the host since it was resumed
	fuse                   int   // if positive, it dies at that many calls from now
	resumes                uint64

	inbox []([]byte) // frames to be read
	files table
	lines [2][]byte // unfinished
}

// Start makes a process, which takes its first step when the world goes on. Who abandons a world kills its processes:
// each holds memory until it ends.
func Start(s Spec) *Process {
	p := &Process{spec: s, clock: s.Clock, disk: s.Disk, deadline: s.World.Now()}
	p.random = rand.NewChaCha8(s.World.Key(fmt.Sprintf("process/%s/%d", s.Name, s.Life)))
	if p.clock == nil {
		p.clock = NewClock(s.World, 0, 0)
	}
	if p.disk == nil {
		p.disk = disk.New()
	}
	p.spec.Limits = s.Limits.orDefault()
	p.files = newTable(p.disk.Root())
	p.resume, p.drop = iter.Pull(func(yield func(struct{}) bool) {
		p.yield = yield
		p.failure = p.live()
	})
	p.plan()
	return p
}

// self brings the process to the calls that its instance makes.
type self struct {
	context.Context
	process *Process
}

// memory is what the process shows of itself to its calls.
type memory interface {
	Read(at, size uint32) ([]byte, bool)
	WriteString(at uint32, s string) bool
	WriteUint32Le(at, v uint32) bool
	WriteUint64Le(at uint32, v uint64) bool
	Size() uint32
}

// live is the life of the process, within the coroutine.
func (p *Process) live() error {
	if p.spec.Module.native != nil {
		return p.liveNative()
	}
	ctx := experimental.WithMemoryAllocator(&self{context.Background(), p}, allocator{p.spec.Module.image})
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	instance, err := p.spec.Module.runtime.InstantiateModule(ctx, p.spec.Module.compiled, config)
	if err != nil {
		return fmt.Errorf("start process %s: %w", p.spec.Name, err)
	}
	defer instance.Close(ctx)
	p.memory = instance.Memory()
	start := instance.ExportedFunction("_start")
	if start == nil {
		return fmt.Errorf("start process %s: the module has no _start: build it for GOOS=wasip1", p.spec.Name)
	}
	_, err = start.Call(&self{context.Background(), p})
	var exit *sys.ExitError
	switch {
	case !errors.As(err, &exit):
		return err
	case exit.ExitCode() == 0:
		return nil
	}
	return ExitError{Code: int(exit.ExitCode())}
}

// Deliver hands it a frame, for descriptor 100:
//
//	connection u32, kind u8, length u32 (little-endian), payload
//
// It keeps the slice. Frames are read in order, as many whole ones at a time as the reader has room for.
func (p *Process) Deliver(frame []byte) {
	if p.ended {
		return
	}
	p.inbox = append(p.inbox, frame)
	p.spec.Usage.delivered()
	if !p.running {
		p.plan()
	}
}

// Kill ends it at once, as SIGKILL does; called while the process itself is running, at the end of the call to the
// host that it is in.
func (p *Process) Kill() {
	if p.ended {
		return
	}
	p.killed = true
	if !p.running {
		p.drop()
		p.finish()
	}
}

// Fuse kills it at the n-th call to the host from now (1 is the next one), before that call does anything. Below 1,
// it takes an earlier fuse away.
func (p *Process) Fuse(n int) { p.fuse = n }

// Pause freezes it until a time of the world, as SIGSTOP and SIGCONT do. What arrives meanwhile waits. A time that has
// passed, such as 0, ends the pause; Forever does not come. Called while the process itself is running, it begins when
// the process parks.
func (p *Process) Pause(until time.Duration) {
	p.frozen = until
	if !p.running && !p.ended {
		p.plan()
	}
}

// Alive says whether it has not ended.
func (p *Process) Alive() bool { return !p.ended }

// Resumes counts how often it was given control.
func (p *Process) Resumes() uint64 { return p.resumes }

// MemoryBytes is the size of its memory, or of what it shares with its world if it is a process of this machine; 0
// before its first step and after its end.
func (p *Process) MemoryBytes() int {
	if p.memory == nil {
		return 0
	}
	return int(p.memory.Size())
}

// plan has it resumed when there is something to do.
func (p *Process) plan() {
	at := p.deadline
	if p.reading && len(p.inbox) > 0 {
		at = 0
	}
	at = max(at, p.frozen, p.spec.World.Now())
	if p.timer != nil && p.timer.When() == at {
		return
	}
	p.timer.Stop()
	p.timer = nil
	if at != Forever {
		p.timer = p.spec.World.At(at, p.run)
	}
}

// run gives it control until it parks or ends.
func (p *Process) run() {
	p.timer = nil
	p.running, p.calls = true, 0
	p.resumes++
	p.spec.Usage.resumed()
	stop := p.watch()
	_, alive := p.resume()
	stop()
	p.running = false
	switch {
	case p.bug != nil:
		panic(p.bug)
	case !alive:
		p.finish()
	default:
		p.plan()
	}
}

// finish tells of the end. The coroutine has ended, and the memory is free.
func (p *Process) finish() {
	p.ended, p.memory, p.inbox = true, nil, nil
	p.files = table{}
	p.timer.Stop()
	p.flush()
	if p.spec.Ended == nil {
		return
	}
	if p.killed {
		p.spec.Ended(ErrKilled)
	} else {
		p.spec.Ended(p.failure)
	}
}

// park gives control back until a time of the world or, if reading, until there is a frame.
func (p *Process) park(deadline time.Duration, reading bool) {
	p.deadline, p.reading = deadline, reading
	if !p.yield(struct{}{}) {
		p.die()
	}
	p.reading = false
}

// die unwinds the coroutine.
func (p *Process) die() {
	p.killed = true
	panic(sys.NewExitError(killedCode))
}

// killedCode is what a shell shows of a process that was killed.
const killedCode = 128 + 9
