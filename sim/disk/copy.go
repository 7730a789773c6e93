// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// What the world does to a disk from outside of its machine.

// Put makes a durable file, and the directories on the way to it. A path that leads through a file is a mistake of the
// caller, and panics.
func (d *Disk) Put(path string, data []byte) {
	slash := strings.LastIndexByte(path, '/')
	dir, name, e := d.split(d.folder(path[:slash+1]), path[slash+1:])
	if e != None {
		panic(fmt.Sprintf("put %s on a disk: %v", path, e))
	}
	n := d.node(false)
	n.data, n.durable = slices.Clone(data), slices.Clone(data)
	d.plant(dir, name, n)
}

// Get is what is in a file, as processes see it.
func (d *Disk) Get(path string) ([]byte, Error) {
	n, e := d.Find(d.root, path)
	switch {
	case e != None:
		return nil, e
	case n.dir:
		return nil, IsDirectory
	}
	return slices.Clone(n.data), None
}

// Files lists the paths of all files in order.
func (d *Disk) Files() []string {
	var list []string
	d.root.walk("", func(path string, n *Node) {
		if !n.dir {
			list = append(list, path)
		}
	})
	return list
}

// Clone copies the disk as processes see it, for Restore. The copy is durable.
func (d *Disk) Clone() *Disk {
	c := New()
	c.SyncTime = d.SyncTime
	for _, e := range d.root.Entries() {
		c.plant(c.root, e.Name, c.copy(e.Node))
	}
	return c
}

// Restore replaces a folder by what it was on another disk, as somebody does who brings back an old copy; "/" is all.
// Nobody may have files in it open.
func (d *Disk) Restore(from *Disk, folder string) Error {
	old, e := from.Find(from.root, folder)
	switch {
	case e != None:
		return e
	case !old.dir:
		return NoDirectory
	}
	here := d.folder(folder)
	d.settle()
	clear(here.entries)
	clear(here.kept)
	for _, e := range old.Entries() {
		d.plant(here, e.Name, d.copy(e.Node))
	}
	return None
}

// Empty takes everything out of a folder, if there is one, as a boot does with one in memory. Nobody may have files in it open.
func (d *Disk) Empty(folder string) {
	if n, e := d.Find(d.root, folder); e == None && n.dir {
		d.settle()
		clear(n.entries)
		clear(n.kept)
	}
}

// Flip changes one bit of one durable byte, as a disk does that rots. It tells where; not ok: all files are empty.
func (d *Disk) Flip(r *rand.Rand) (path string, at int, ok bool) {
	type place struct {
		path string
		*Node
	}
	var places []place
	d.root.walk("", func(path string, n *Node) {
		if len(n.durable) > 0 {
			places = append(places, place{path, n})
		}
	})
	if len(places) == 0 {
		return "", 0, false
	}
	p := places[r.IntN(len(places))]
	at = r.IntN(len(p.durable))
	bit := byte(1) << r.IntN(8)
	p.durable[at] ^= bit
	if at < len(p.data) {
		p.data[at] ^= bit
	}
	return p.path, at, true
}

// settle makes everything durable.
func (d *Disk) settle() {
	for _, c := range d.changes {
		c.keep()
	}
	d.changes = nil
}

// folder finds a directory, or makes it durably.
func (d *Disk) folder(path string) *Node {
	n := d.root
	for name := range strings.SplitSeq(path, "/") {
		if name == "" {
			continue
		}
		next, there := n.entries[name]
		if !there {
			next = d.node(true)
			d.plant(n, name, next)
		}
		n = next
	}
	return n
}

// plant makes a durable entry.
func (d *Disk) plant(dir *Node, name string, n *Node) {
	d.change(change{node: n, to: dir, name: name})
	d.settle()
}

// copy makes a durable copy of a node of any disk.
func (d *Disk) copy(n *Node) *Node {
	c := d.node(n.dir)
	c.modified = n.modified
	if !n.dir {
		c.data, c.durable = slices.Clone(n.data), slices.Clone(n.data)
		return c
	}
	for _, e := range n.Entries() {
		below := d.copy(e.Node)
		below.parent, c.entries[e.Name] = c, below
	}
	c.kept = maps.Clone(c.entries)
	return c
}

// walk visits everything below, in order of names.
func (n *Node) walk(path string, visit func(path string, n *Node)) {
	for _, e := range n.Entries() {
		visit(path+"/"+e.Name, e.Node)
		e.walk(path+"/"+e.Name, visit)
	}
}
