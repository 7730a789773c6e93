// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
)

// Stores is everything that a member keeps.
type Stores struct {
	Log       raft.LogStore
	Stable    raft.StableStore
	Snapshots raft.SnapshotStore
}

// Error is a fault of a member's disk. It ends the member.
type Error struct {
	Path   string // the folder or file
	Op     string // what was tried
	Remedy string // what an operator can do
	Err    error
}

// Error says what failed, on what, why, and what to do.
func (e *Error) Error() string {
	return fmt.Sprintf("%s in %s: %v; %s", e.Op, e.Path, e.Err, e.Remedy)
}

func (e *Error) Unwrap() error { return e.Err }

// ErrCorrupt is the cause of an Error when bytes were read but are not the ones that were written.
var ErrCorrupt = errors.New("corrupt")

// Remedies, in the words that a user sees.
const (
	remedyHang  = "look at the disk and at what it is attached by, then start this member again; nothing that was acknowledged is lost"
	remedyWrite = "free space or make the folder writable, then start this member again; nothing that was acknowledged is lost"
	remedyRead  = "see what the system logs of the disk, and whether this member may read the folder, then start it again; what is there may well be sound"
	// RemedyReplace is what to do with a folder that can no longer be believed.
	RemedyReplace = "check the disk, move this folder away and start the member again: it rejoins as a new server and copies the record from the others"
)

// ErrHangs is the cause of an Error when a write has not come back in time. What hangs may still be written.
var ErrHangs = errors.New("the disk has not answered for 10 s")

// A write of the log, a term or a vote hangs when it was looked at so often and was not done. Looks are counted, and not time: a process that
// stood still has waited for no disk. Snapshots are large, and take what they take.
const (
	hangLooks = 10
	lookEvery = time.Second
)

// Guard stands between raft and its stores. Every failure ends the member that it belongs to.
type Guard struct {
	path   string
	stores Stores
	floor  *Floor // nil for none

	once   sync.Once
	failed chan struct{}
	err    error // readable once failed is closed

	mu     sync.Mutex
	writes map[*writing]struct{} // under way
}

// NewGuard guards stores, which are at path (a folder, or a name that tells an operator where to look).
func NewGuard(path string, stores Stores) *Guard {
	return &Guard{path: path, stores: stores, failed: make(chan struct{}), writes: map[*writing]struct{}{}}
}

// Raise has a floor raised by all that is kept from now on, before whoever writes goes on. Nobody uses the stores meanwhile.
func (g *Guard) Raise(f *Floor) { g.floor = f }

// Failed is closed once an operation failed; Err tells which.
func (g *Guard) Failed() <-chan struct{} { return g.failed }

// Err is the first failure, an *Error, or nil.
func (g *Guard) Err() error {
	select {
	case <-g.failed:
		return g.err
	default:
		return nil
	}
}

// Checked gives the stores with checksums on every entry. A failure is remembered (see Failed) and returned.
func (g *Guard) Checked() Stores { return g.view(false) }

// ForRaft gives the stores for the library's own goroutines: a call that fails never returns. Returning the error
// would let the library go on as a voter (StoreLogs, persistVote) or panic and take the whole process with it
// (setCurrentTerm, processLogs). Instead the goroutine ends as runtime.Goexit ends it, with its deferred calls, which
// answer whoever waits; the owner of the Guard sees Failed and shuts the library down.
func (g *Guard) ForRaft() Stores { return g.view(true) }

func (g *Guard) view(exit bool) Stores {
	v := view{guard: g, exit: exit}
	return Stores{
		Log:       &guardedLog{view: v, inner: g.stores.Log},
		Stable:    &guardedStable{view: v, inner: g.stores.Stable},
		Snapshots: &guardedSnapshots{view: v, inner: g.stores.Snapshots},
	}
}

// view is one way to look through a Guard.
type view struct {
	guard *Guard
	exit  bool
}

// write passes a write's result on, or ends here.
func (v view) write(op string, err error) error { return v.check(op, remedyWrite, err) }

// read passes a read's result on, or ends here.
func (v view) read(op string, err error) error { return v.check(op, RemedyOf(err), err) }

// RemedyOf is what to do about what could not be read. That the system did not give it, such as for lack of a right or for a cable, says
// nothing against what is there; that it is missing does.
func RemedyOf(err error) string {
	if Unread(err) {
		return remedyRead
	}
	return RemedyReplace
}

// Unread tells whether the system did not give something that is there.
func Unread(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && !errors.Is(err, fs.ErrNotExist)
}

func (v view) check(op, remedy string, err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if !errors.As(err, &known) {
		known = &Error{Path: v.guard.path, Op: op, Remedy: remedy, Err: err}
	}
	v.guard.fail(known)
	if v.exit {
		runtime.Goexit()
	}
	return known
}

// fail remembers the first failure.
func (g *Guard) fail(err *Error) {
	g.once.Do(func() {
		g.err = err
		close(g.failed)
	})
}
