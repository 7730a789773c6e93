// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/store"
)

const (
	lockFile     = "lock"
	logFile      = "raft.db"
	snapshotsDir = "snapshots"
	// snapshotsKept is enough to go on when the newest one is being replaced; an older one is never fallen back to.
	snapshotsKept = 2
)

// ErrLocked says that another process uses the folder.
var ErrLocked = errors.New("another process uses this folder")

const (
	remedyOpen   = "make the folder exist, writable and with free space for the user that runs this member"
	remedyLocked = "stop that process, or give this member a folder of its own"
)

// Folder is an open data folder.
type Folder struct {
	path     string
	options  Options
	lock     io.Closer
	log      Log
	snaps    *snapshots
	identity Identity
	fresh    bool
}

// Options are what not every platform has.
type Options struct {
	// Lock takes the lock of an open file, until that is closed by what it gives, or this process ends. Errors: ErrLocked.
	Lock func(*os.File) (io.Closer, error)
	// MakeLog makes an empty log in the file at path, where there is none; OpenLog opens one that was made. Their errors
	// name the path and the remedy.
	MakeLog func(path string) (Log, error)
	OpenLog func(path string) (Log, error)
	// Chmod sets who may do what with a file or a folder, as os.Chmod does; nil where there is nobody else.
	Chmod func(path string, mode fs.FileMode) error
}

// Log is the log and the stable store together, in one file. What a method wrote is on disk when it returns.
type Log interface {
	raft.LogStore
	raft.StableStore
	io.Closer
}

// OpenWith opens the data folder of member name, and makes it if there is none. An empty folder becomes a new instance.
//
// Errors: *store.Error names path and remedy; ErrLocked, store.ErrCorrupt and ErrForeign are among the causes.
func OpenWith(path, name string, o Options) (*Folder, error) {
	f := &Folder{path: path, options: o}
	if err := f.open(name); err != nil {
		_ = f.Close() // the first error is the one to tell
		return nil, err
	}
	return f, nil
}

func (f *Folder) open(name string) error {
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return f.error("open data folder", remedyOpen, err)
	}
	if err := f.takeLock(); err != nil {
		return err
	}
	if err := f.identify(name); err != nil {
		return err
	}
	log, err := f.options.OpenLog(filepath.Join(f.path, logFile))
	if err != nil {
		return err
	}
	f.log = log
	if f.snaps, err = openSnapshots(f.path, f.options.Chmod); err != nil {
		return err
	}
	return nil
}

// takeLock keeps a second process out for as long as this one lives, however it ends.
func (f *Folder) takeLock() error {
	path := filepath.Join(f.path, lockFile)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return f.error("open data folder", remedyOpen, err)
	}
	held, err := f.options.Lock(file)
	if err != nil {
		return f.error("lock data folder", remedyLocked, errors.Join(err, file.Close()))
	}
	f.lock = held
	return nil
}

// Path is the folder.
func (f *Folder) Path() string { return f.path }

// Identity is who this folder belongs to.
func (f *Folder) Identity() Identity { return f.identity }

// Fresh tells whether this folder was made just now: nothing was ever kept in it.
func (f *Folder) Fresh() bool { return f.fresh }

// Stores are the log, the stable store and the snapshots. They belong behind a store.Guard.
func (f *Folder) Stores() store.Stores {
	return store.Stores{Log: f.log, Stable: f.log, Snapshots: f.snaps}
}

// closeWithin bounds how long Close waits for a write that is under way.
const closeWithin = 3 * time.Second

var errWriting = errors.New("a write has not come back: the disk hangs")

// Close gives the folder back. What was written is on disk already. Where a write hangs the folder stays locked until this process ends.
func (f *Folder) Close() error {
	var errs []error
	if f.log != nil {
		closed := make(chan error, 1)
		go func() { closed <- f.log.Close() }()
		select {
		case err := <-closed:
			errs = append(errs, err)
		case <-time.After(closeWithin):
			return fmt.Errorf("close data folder %s: %w", f.path, errWriting)
		}
	}
	if f.lock != nil {
		errs = append(errs, f.lock.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close data folder %s: %w", f.path, err)
	}
	return nil
}

func (f *Folder) error(op, remedy string, err error) error {
	return &store.Error{Path: f.path, Op: op, Remedy: remedy, Err: err}
}

// foreign lists what is in the folder and was not made by a half-finished Open.
func (f *Folder) foreign() ([]string, error) {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		switch name := e.Name(); {
		case name == lockFile, name == "lost+found", strings.HasPrefix(name, identityFile):
		default:
			names = append(names, name)
		}
	}
	return names, nil
}
