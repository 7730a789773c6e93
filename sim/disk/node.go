// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"maps"
	"slices"
)

// maxSize is of a file; a run that needs more has gone astray.
const maxSize = 1 << 30

// maxPending is how many writes of a file wait at most; beyond, the kernel writes the older ones back by itself.
const maxPending = 1024

// Node is a file or a directory. It outlives its name for those who have it open.
type Node struct {
	disk     *Disk
	inode    uint64
	dir      bool
	modified uint64

	parent  *Node            // as seen
	entries map[string]*Node // as seen
	kept    map[string]*Node // durable

	data    []byte  // as seen
	durable []byte  // what a crash leaves for sure
	pending []write // from durable to data, in order
}

// write is a change of a file: bytes written, or a new size.
type write struct {
	at   int
	data []byte // nil: the file's size becomes at
}

// Entry is a name in a directory.
type Entry struct {
	Name string
	*Node
}

// Inode is its number, unique on the disk.
func (n *Node) Inode() uint64 { return n.inode }

// Directory says whether it is one.
func (n *Node) Directory() bool { return n.dir }

// Size is that of a file, in bytes.
func (n *Node) Size() int { return len(n.data) }

// Modified is when Touch was last called, in nanoseconds.
func (n *Node) Modified() uint64 { return n.modified }

// Touch sets the time of the last change.
func (n *Node) Touch(nanoseconds uint64) { n.modified = nanoseconds }

// Entries lists a directory in order of names.
func (n *Node) Entries() []Entry {
	list := make([]Entry, 0, len(n.entries))
	for _, name := range slices.Sorted(maps.Keys(n.entries)) {
		list = append(list, Entry{name, n.entries[name]})
	}
	return list
}

// ReadAt fills p from an offset. It reads less at the end of the file, and nothing beyond.
func (n *Node) ReadAt(p []byte, at int) (int, Error) {
	if n.dir {
		return 0, IsDirectory
	}
	if e := n.disk.check(OpRead); e != None {
		return 0, e
	}
	if at < 0 {
		return 0, Invalid
	}
	if at >= len(n.data) {
		return 0, None
	}
	return copy(p, n.data[at:]), None
}

// WriteAt writes p at an offset, wholly or not at all.
func (n *Node) WriteAt(p []byte, at int) Error {
	if n.dir {
		return IsDirectory
	}
	if e := n.disk.check(OpWrite); e != None {
		return e
	}
	switch end := at + len(p); {
	case at < 0:
		return Invalid
	case len(p) == 0:
		return None
	case end > maxSize:
		return TooLarge
	case end > len(n.data) && n.disk.full:
		return NoSpace
	}
	n.do(write{at: at, data: slices.Clone(p)})
	return None
}

// Truncate sets the size of a file; what is new is zero.
func (n *Node) Truncate(size int) Error {
	if n.dir {
		return IsDirectory
	}
	if e := n.disk.check(OpWrite); e != None {
		return e
	}
	switch {
	case size < 0:
		return Invalid
	case size > maxSize:
		return TooLarge
	case size > len(n.data) && n.disk.full:
		return NoSpace
	}
	n.do(write{at: size})
	return None
}

// Sync makes it durable: the bytes of a file, the entries of a directory, and the way to it.
func (n *Node) Sync() Error {
	if e := n.disk.check(OpSync); e != None {
		n.pending = nil // Linux takes the pages for clean now
		return e
	}
	n.writeBack(len(n.pending))
	n.disk.commit(n)
	return None
}

func (n *Node) do(w write) {
	n.data = w.apply(n.data)
	n.pending = append(n.pending, w)
	if len(n.pending) > maxPending {
		n.writeBack(maxPending / 2)
	}
}

// writeBack makes the first of the pending writes durable.
func (n *Node) writeBack(count int) {
	for _, w := range n.pending[:count] {
		n.durable = w.apply(n.durable)
	}
	n.pending = slices.Delete(n.pending, 0, count)
}

// apply gives the bytes of a file after the change. It may change them in place.
func (w write) apply(data []byte) []byte {
	if w.data == nil {
		return resize(data, w.at)
	}
	if end := w.at + len(w.data); end > len(data) {
		data = resize(data, end)
	}
	copy(data[w.at:], w.data)
	return data
}

// resize cuts, or appends zeros.
func resize(data []byte, size int) []byte {
	if size <= len(data) {
		return data[:size]
	}
	old := len(data)
	data = slices.Grow(data, size-old)[:size]
	clear(data[old:])
	return data
}
