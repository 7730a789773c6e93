// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"strings"
	"time"
)

// Op is a kind of operation that can be made to fail.
type Op string

// Operations.
const (
	OpOpen   Op = "open"
	OpRead   Op = "read"
	OpWrite  Op = "write" // also truncation
	OpSync   Op = "sync"
	OpRename Op = "rename"
	OpRemove Op = "remove"
	OpCreate Op = "create" // of files and directories
)

// Flags say how to open.
type Flags struct {
	Create, Exclusive, Truncate, Directory bool
}

// Disk is one disk. It is used by one goroutine.
type Disk struct {
	// SyncTime is how long the next Sync takes, which is for the caller to wait. Nil means 100 microseconds.
	SyncTime func() time.Duration

	root    *Node
	inodes  uint64
	changes []change // of directories, in order, that are not durable
	full    bool
	hanging string // how the names of files begin whose syncs hang; empty: none
	failing map[Op]int
}

// New makes an empty disk.
func New() *Disk {
	d := &Disk{failing: map[Op]int{}}
	d.root = d.node(true)
	return d
}

// Root is the directory at the top.
func (d *Disk) Root() *Node { return d.root }

// Delay is how long a Sync takes now.
func (d *Disk) Delay() time.Duration {
	if d.SyncTime == nil {
		return 100 * time.Microsecond
	}
	return d.SyncTime()
}

// Fill makes each write that needs room, and each creation, fail with NoSpace; Free ends that.
func (d *Disk) Fill() { d.full = true }

// Free ends Fill.
func (d *Disk) Free() { d.full = false }

// Hang has syncs of files hang whose names begin so, until Recover: they neither succeed nor fail. Files are opened and read as ever.
func (d *Disk) Hang(names string) { d.hanging = names }

// Recover ends Hang.
func (d *Disk) Recover() { d.hanging = "" }

// Hangs tells whether a sync of a file of that name hangs now.
func (d *Disk) Hangs(name string) bool { return d.hanging != "" && strings.HasPrefix(name, d.hanging) }

// Fail makes the next times operations of a kind fail with IO.
func (d *Disk) Fail(op Op, times int) { d.failing[op] = times }

// Wipe replaces the disk by an empty one. Open files lead nowhere any more.
func (d *Disk) Wipe() {
	d.root, d.changes = d.node(true), nil
}

// Open finds a file or directory by its path from dir, or creates a file if flags say so.
func (d *Disk) Open(dir *Node, path string, flags Flags) (*Node, Error) {
	if e := d.check(OpOpen); e != None {
		return nil, e
	}
	n, e := d.Find(dir, path)
	switch {
	case e == NoEntry && flags.Create && !flags.Directory:
		return d.create(dir, path, false)
	case e != None:
		return nil, e
	case flags.Create && flags.Exclusive:
		return nil, Exists
	case flags.Directory && !n.dir:
		return nil, NoDirectory
	case n.dir && (flags.Create || flags.Truncate):
		return nil, IsDirectory
	case flags.Truncate:
		return n, n.Truncate(0)
	}
	return n, None
}

// Find finds a file or directory by its path from dir.
func (d *Disk) Find(dir *Node, path string) (*Node, Error) {
	n := dir
	for name := range strings.SplitSeq(path, "/") {
		if !n.dir {
			return nil, NoDirectory
		}
		switch name {
		case "", ".":
			continue
		case "..":
			if n = n.parent; n == nil {
				return nil, Forbidden
			}
			continue
		}
		next, ok := n.entries[name]
		if !ok {
			return nil, NoEntry
		}
		n = next
	}
	return n, None
}

// Mkdir makes a directory.
func (d *Disk) Mkdir(dir *Node, path string) Error {
	_, e := d.create(dir, path, true)
	return e
}

// Remove removes a file, or an empty directory if asked for that.
func (d *Disk) Remove(dir *Node, path string, directory bool) Error {
	parent, name, e := d.split(dir, path)
	if e != None {
		return e
	}
	n, ok := parent.entries[name]
	switch {
	case !ok:
		return NoEntry
	case directory && !n.dir:
		return NoDirectory
	case !directory && n.dir:
		return IsDirectory
	case len(n.entries) > 0:
		return NotEmpty
	}
	if e := d.check(OpRemove); e != None {
		return e
	}
	d.change(change{node: n, from: parent, old: name})
	return None
}

// Rename moves a file or directory in one step, and replaces a file or an empty directory that is in its new place.
func (d *Disk) Rename(oldDir *Node, oldPath string, newDir *Node, newPath string) Error {
	from, old, e := d.split(oldDir, oldPath)
	if e != None {
		return e
	}
	to, name, e := d.split(newDir, newPath)
	if e != None {
		return e
	}
	n, ok := from.entries[old]
	if !ok {
		return NoEntry
	}
	if there, ok := to.entries[name]; ok {
		switch {
		case there == n:
			return None
		case there.dir && !n.dir:
			return IsDirectory
		case n.dir && !there.dir:
			return NoDirectory
		case len(there.entries) > 0:
			return NotEmpty
		}
	}
	for up := to; up != nil; up = up.parent {
		if up == n {
			return Invalid
		}
	}
	if e := d.check(OpRename); e != None {
		return e
	}
	d.change(change{node: n, from: from, old: old, to: to, name: name})
	return None
}

func (d *Disk) create(dir *Node, path string, directory bool) (*Node, Error) {
	parent, name, e := d.split(dir, path)
	if e != None {
		return nil, e
	}
	if _, ok := parent.entries[name]; ok {
		return nil, Exists
	}
	if e := d.check(OpCreate); e != None {
		return nil, e
	}
	if d.full {
		return nil, NoSpace
	}
	n := d.node(directory)
	d.change(change{node: n, to: parent, name: name})
	return n, None
}

// split finds the directory that a path's last name is in.
func (d *Disk) split(dir *Node, path string) (*Node, string, Error) {
	path = strings.TrimRight(path, "/")
	slash := strings.LastIndexByte(path, '/')
	name := path[slash+1:]
	switch {
	case name == "" || name == "." || name == "..":
		return nil, "", Invalid
	case len(name) > 255:
		return nil, "", TooLong
	}
	parent, e := d.Find(dir, path[:slash+1])
	if e != None {
		return nil, "", e
	}
	if !parent.dir {
		return nil, "", NoDirectory
	}
	return parent, name, None
}

// check lets an operation fail that was asked to.
func (d *Disk) check(op Op) Error {
	if d.failing[op] > 0 {
		d.failing[op]--
		return IO
	}
	return None
}

func (d *Disk) node(directory bool) *Node {
	d.inodes++
	n := &Node{disk: d, inode: d.inodes, dir: directory}
	if directory {
		n.entries, n.kept = map[string]*Node{}, map[string]*Node{}
	}
	return n
}
