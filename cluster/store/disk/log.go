// SPDX-License-Identifier: Apache-2.0

//go:build !wasip1

package disk

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/internal/mapped"
)

var _ store.Sizer = (*logStore)(nil)

// logStore is a bbolt file whose faults are errors. bbolt panics on a damaged page, and reading a page behind the end
// of a file that was cut short is a fault of memory: both would end the whole process.
type logStore struct {
	path  string
	inner *boltLog

	// mapping excludes who has the file mapped anew from who sheds pages of it. Reads do neither.
	mapping sync.Mutex
	written int // bytes, since pages were shed
}

// After so many bytes that were written, each write counted with the pages that it looks at, pages of the file are shed: they count as memory
// of this process.
const (
	shedAfter  = 2 << 20
	writeLooks = 4 << 10
)

// lockTimeout bounds the wait for bbolt's own lock. Ours is held already, so it is free.
const lockTimeout = 2 * time.Second

func boltOptions(readOnly bool) *bbolt.Options {
	return &bbolt.Options{
		Timeout: lockTimeout, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, ReadOnly: readOnly,
	}
}

// openLog opens a log that exists.
func openLog(path string) (Log, error) {
	live, err := walk(path)
	if err != nil {
		return nil, openError(path, "check the log", store.RemedyOf(err), err)
	}
	l := &logStore{path: path}
	if err := l.guarded(func() error { return shrink(path, live) }); err != nil {
		return nil, openError(path, "open the log", remedyOpen, err)
	}
	return createLog(path)
}

// createLog opens a log, and makes it if there is none.
func createLog(path string) (Log, error) {
	l := &logStore{path: path}
	err := l.guarded(func() (err error) {
		if l.inner, err = openBolt(path, boltOptions(false)); err != nil {
			return err
		}
		return l.inner.db.Sync() // what a process wrote that was then killed may not be on disk yet, and counts from now on
	})
	if err != nil {
		return nil, openError(path, "open the log", remedyOpen, err)
	}
	return l, nil
}

func openError(path, op, remedy string, err error) error {
	if known := (*store.Error)(nil); errors.As(err, &known) {
		return err
	}
	if errors.Is(err, berrors.ErrTimeout) {
		err, remedy = ErrLocked, remedyLocked
	}
	return &store.Error{Path: path, Op: op, Remedy: remedy, Err: err}
}

// walk reads every page before the file is opened for writing: bbolt then looks for free pages in a goroutine of its
// own, where a panic cannot be caught. It gives how many bytes are in the file.
func walk(path string) (live int64, err error) {
	var db *bbolt.DB
	l := &logStore{path: path}
	err = l.guarded(func() (err error) {
		if db, err = bbolt.Open(path, 0o600, boltOptions(true)); err != nil {
			if unread := readThrough(path); store.Unread(unread) { // which bbolt ignores
				return unread
			}
			return fmt.Errorf("%w: %w", store.ErrCorrupt, err)
		}
		return db.View(func(tx *bbolt.Tx) error {
			return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
				bytes, err := walkBucket(name, b)
				live += bytes
				return err
			})
		})
	})
	if db == nil {
		return live, err
	}
	return live, cmp.Or(err, l.guarded(db.Close))
}

func walkBucket(name []byte, b *bbolt.Bucket) (live int64, err error) {
	var last []byte
	err = b.ForEach(func(k, v []byte) error {
		if last != nil && bytes.Compare(last, k) >= 0 {
			return fmt.Errorf("%w: keys of %s are out of order", store.ErrCorrupt, name)
		}
		last = k
		live += int64(len(k) + len(v))
		return nil
	})
	return live, err
}

// guarded turns panics and memory faults of f into errors.
func (l *logStore) guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = l.fault(v)
		}
	}()
	return f()
}

// fault is what a panic means. bbolt reads the file as memory: what is not there, or makes no sense, is told as a fault of this program's own, such as
// a nil pointer, and what the system cannot read of a disk, too. That is found out by reading the file as one.
func (l *logStore) fault(v any) error {
	cause := fmt.Errorf("%w: %v", store.ErrCorrupt, v) // bbolt's own words
	if _, ours := v.(runtime.Error); ours {
		cause = fmt.Errorf("%w: a page of it is missing, or is not what was written", store.ErrCorrupt)
	}
	if err := readThrough(l.path); store.Unread(err) {
		cause = err
	}
	return &store.Error{Path: l.path, Op: "use the log", Remedy: store.RemedyOf(cause), Err: cause}
}

// readThrough reads a file to its end.
func readThrough(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // nothing was written to it
	_, err = io.Copy(io.Discard, file)
	return err
}

// Close implements Log.
func (l *logStore) Close() error {
	if l.inner == nil {
		return nil
	}
	l.mapping.Lock()
	defer l.mapping.Unlock()
	return l.guarded(l.inner.db.Close)
}

// write does what may have bbolt map the file anew, and writes so many bytes.
func (l *logStore) write(bytes int, f func() error) error {
	l.mapping.Lock()
	defer l.mapping.Unlock()
	if l.written += bytes + writeLooks; l.written >= shedAfter {
		defer l.shed()
	}
	return l.guarded(f)
}

// shed has the kernel take back what is mapped of the file, by somebody who holds mapping.
func (l *logStore) shed() {
	l.written = 0
	if path, err := filepath.Abs(l.path); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			mapped.ShedShared(path)
		}
	}
}

func (l *logStore) FirstIndex() (i uint64, err error) {
	err = l.guarded(func() (err error) { i, err = l.inner.FirstIndex(); return err })
	return i, err
}

func (l *logStore) LastIndex() (i uint64, err error) {
	err = l.guarded(func() (err error) { i, err = l.inner.LastIndex(); return err })
	return i, err
}

func (l *logStore) GetLog(index uint64, out *raft.Log) error {
	return l.guarded(func() error { return l.inner.GetLog(index, out) })
}

// EntryBytes implements store.Sizer.
func (l *logStore) EntryBytes(index uint64) (bytes uint64, err error) {
	err = l.guarded(func() (err error) { bytes, err = l.inner.EntryBytes(index); return err })
	return bytes, err
}

func (l *logStore) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

func (l *logStore) StoreLogs(logs []*raft.Log) error {
	bytes := 0
	for _, entry := range logs {
		bytes += len(entry.Data)
	}
	return l.write(bytes, func() error { return l.inner.StoreLogs(logs) })
}

// DeleteRange implements Log. It looks at all that is deleted, so pages are shed after it.
func (l *logStore) DeleteRange(first, last uint64) error {
	return l.write(shedAfter, func() error { return l.inner.DeleteRange(first, last) })
}

func (l *logStore) Set(key, value []byte) error {
	return l.write(len(value), func() error { return l.inner.Set(key, value) })
}

func (l *logStore) Get(key []byte) (value []byte, err error) {
	err = l.guarded(func() (err error) { value, err = l.inner.Get(key); return err })
	return value, err
}

func (l *logStore) SetUint64(key []byte, value uint64) error {
	return l.Set(key, binary.BigEndian.AppendUint64(nil, value))
}

func (l *logStore) GetUint64(key []byte) (uint64, error) {
	value, err := l.Get(key)
	if err != nil {
		return 0, err
	}
	if len(value) < 8 {
		return 0, fmt.Errorf("%w: %s has %d bytes", store.ErrCorrupt, key, len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}
