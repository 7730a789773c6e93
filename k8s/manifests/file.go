// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/alike"
)

// file is what is known of one manifest file.
type file struct {
	name string
	// size and modified are what the newest content was read under.
	size     int64
	modified time.Time

	// newest is the content last read, whose hash is sum. It counts once it stood for long enough: every reading
	// from since up to the one that seen numbers found it.
	newest  content
	sum     [sha256.Size]byte
	since   time.Time
	seen    uint64
	decided bool
	// good is the content in force, if any ever was.
	good    content
	hasGood bool

	// trouble is why the newest content does not count, or why there is none.
	trouble *world.Problem
	// missing is since when the file is not there; zero while it is.
	missing time.Time
	// touched says that good, trouble or missing changed since the folder last took notice.
	touched bool
}

// look reads the file if it may have changed, as part of the numbered reading of the folder. Errors: it cannot be read.
func (f *file) look(fsys fs.FS, now time.Time, reading uint64, like *alike.Table, by rules) error {
	info, err := fs.Stat(fsys, f.name)
	if err != nil {
		return err
	}
	untouched := !f.since.IsZero() && info.Size() == f.size && info.ModTime().Equal(f.modified) && !f.modified.IsZero()
	if untouched && f.decided && reading%rereadEvery != 0 {
		f.seen = reading
		return nil
	}
	sum, err := sumOf(fsys, f.name)
	if err != nil {
		return err
	}
	switch {
	case sum != f.sum || f.since.IsZero():
		data, err := readBounded(fsys, f.name)
		if err != nil {
			return err
		}
		f.newest, f.sum, f.since, f.decided = decode(f.name, data, like, by), sha256.Sum256(data), now, false
	case f.decided:
		if f.trouble != nil {
			f.judge() // it could not be read for a while, and is as it was
		}
	case f.seen != reading-1:
		f.since = now // nobody knows what was there in between
	}
	f.size, f.modified, f.seen = info.Size(), info.ModTime(), reading
	return nil
}

func (f *file) unreadable(err error) {
	f.complain(&world.Problem{Severity: world.Failed, File: f.name, Why: "cannot be read: " + reason(err),
		Remedy: "make it readable for this process; until then it counts as it was"})
}

// complain replaces the file's trouble.
func (f *file) complain(p *world.Problem) {
	if f.trouble == nil || *f.trouble != *p {
		f.trouble, f.touched = p, true
	}
}

// away tells whether the file is not there at the moment.
func (f *file) away() bool { return !f.missing.IsZero() }

// miss notes since when the file is not there; the zero time means that it is.
func (f *file) miss(since time.Time) {
	f.touched = f.touched || f.missing.IsZero() != since.IsZero()
	f.missing = since
}

// settled lets the newest content count if it has stood for long enough, and otherwise tells when it will have. A file
// that this reading did not see is not waited for, and while the folder is in trouble nothing is dropped: what went from
// this file may be in one that cannot be read.
func (f *file) settled(now time.Time, reading uint64, trouble bool) (due time.Time, waiting bool) {
	if f.decided || f.since.IsZero() {
		return time.Time{}, false
	}
	need, drops := settle, f.drops()
	if drops {
		need = gone
	}
	switch due = f.since.Add(need); {
	case f.seen != reading || drops && trouble:
		return time.Time{}, true
	case now.Before(due):
		return due, true
	}
	f.decided = true
	f.judge()
	return time.Time{}, false
}

// judge puts the newest content in force, or says why not.
func (f *file) judge() {
	switch {
	case f.newest.broken != nil:
		f.complain(f.newest.broken)
	case f.newest.blank() && len(f.good.objects) > 0:
		f.complain(&world.Problem{Severity: world.Failed, File: f.name, Why: "holds no object any more",
			Remedy: "delete the file if its objects shall go; until then it counts as it was"})
	case f.newest.lost != nil && f.drops():
		lost := *f.newest.lost
		lost.Remedy = "mend it, or delete it if its object shall go; until then the file counts as it was"
		f.complain(&lost)
	default:
		f.good, f.hasGood, f.trouble, f.touched = f.newest, true, nil, true
	}
}

// problems gathers what a person should mend of the file.
func (f *file) problems() (out []world.Problem) {
	switch {
	case f.trouble != nil:
		out = append(out, *f.trouble)
	case f.hasGood && f.good.blank():
		out = append(out, world.Problem{Severity: world.Failed, File: f.name, Why: "holds no object",
			Remedy: "delete the file if that is meant; until then nobody knows what it held, and what is missing is not taken for gone"})
	}
	return append(out, f.good.problems...)
}

// known tells whether what the file holds, or last held, is known: what was in one that is blank, or has a document that is no object,
// may have been read by an earlier process alone.
func (f *file) known() bool {
	return f.hasGood && !f.good.blank() && f.good.lost == nil
}

// drops tells whether the newest content lacks an object of the one in force.
func (f *file) drops() bool {
	has := make(map[world.Ref]bool, len(f.newest.objects))
	for _, o := range f.newest.objects {
		has[o.ref()] = true
	}
	for _, o := range f.good.objects {
		if !has[o.ref()] {
			return true
		}
	}
	return false
}

// sumOf is the hash of a file, which costs less than to have its content: most files are as they were.
func sumOf(fsys fs.FS, name string) (sum [sha256.Size]byte, err error) {
	in, err := fsys.Open(name)
	if err != nil {
		return sum, err
	}
	defer in.Close()
	h := sha256.New()
	buffer := buffers.Get().(*[bufferBytes]byte)
	defer buffers.Put(buffer)
	if _, err := io.CopyBuffer(h, io.LimitReader(in, maxFileBytes+1), buffer[:]); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// buffers are what files are read through: every one of them is, again and again.
var buffers = sync.Pool{New: func() any { return new([bufferBytes]byte) }} //nolint:gochecknoglobals // what is in them is nobody's

const bufferBytes = 32 << 10

func readBounded(fsys fs.FS, name string) ([]byte, error) {
	in, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxFileBytes+1))
	if err == nil && len(data) > maxFileBytes {
		err = fmt.Errorf("larger than %d MiB", maxFileBytes>>20)
	}
	return data, err
}
