// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"bytes"
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"

	"pgregory.net/rapid"
)

// entry is a place in a tree: a name in a directory, which is known by its inode.
type entry struct {
	dir  uint64
	name string
}

// tree says what is in each place.
type tree map[entry]uint64

// places lists it in order.
func (t tree) places() []entry {
	return slices.SortedFunc(maps.Keys(t), func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.dir, b.dir), cmp.Compare(a.name, b.name))
	})
}

// account is what the model knows of a file.
type account struct {
	data     []byte // as seen
	synced   []byte
	possible []map[byte]bool // since the sync, at each offset: what may be there
	size     [2]int          // since the sync: the smallest and the largest
}

// sync makes what is seen the only thing possible.
func (a *account) sync() {
	a.synced = bytes.Clone(a.data)
	a.possible = nil
	a.size = [2]int{len(a.data), len(a.data)}
}

// resized takes note of a size that the file had.
func (a *account) resized() {
	a.size[0], a.size[1] = min(a.size[0], len(a.data)), max(a.size[1], len(a.data))
}

// may takes note of a byte that may be at an offset.
func (a *account) may(at int, b byte) {
	for len(a.possible) <= at {
		a.possible = append(a.possible, map[byte]bool{})
	}
	a.possible[at][b] = true
}

// model is an account of a disk which is simpler than a disk: whole trees for each moment.
type model struct {
	disk    *Disk
	trees   []tree            // what it was after each change since the durable one, which is the first
	touched []map[uint64]bool // by the change that led to the tree of the same place
	gone    map[uint64]bool   // removed or replaced since the durable tree
	files   map[uint64]*account
	nodes   map[uint64]*Node
}

func newModel() *model {
	d := New()
	return &model{
		disk: d, trees: []tree{{}}, touched: []map[uint64]bool{nil},
		gone: map[uint64]bool{}, files: map[uint64]*account{}, nodes: map[uint64]*Node{d.root.inode: d.root},
	}
}

// now is the tree as it is seen.
func (m *model) now() tree { return m.trees[len(m.trees)-1] }

// changed notes a tree that has become visible.
func (m *model) changed(t tree, touched ...uint64) {
	set := map[uint64]bool{}
	for _, inode := range touched {
		set[inode] = true
	}
	m.trees, m.touched = append(m.trees, t), append(m.touched, set)
}

// synced forgets the trees before the last one that concerns a node.
func (m *model) synced(inode uint64) {
	for k := len(m.trees) - 1; k > 0; k-- {
		if m.touched[k][inode] {
			m.trees, m.touched = m.trees[k:], m.touched[k:]
			m.recount()
			return
		}
	}
}

// recount finds what was removed since the durable tree.
func (m *model) recount() {
	m.gone = map[uint64]bool{}
	last := m.now()
	for _, inode := range m.trees[0] {
		m.gone[inode] = true
	}
	for _, inode := range last {
		delete(m.gone, inode)
	}
}

// look reads a tree off the disk.
func look(d *Disk) tree {
	t := tree{}
	var visit func(n *Node)
	visit = func(n *Node) {
		for _, e := range n.Entries() {
			t[entry{n.inode, e.Name}] = e.inode
			visit(e.Node)
		}
	}
	visit(d.root)
	return t
}

// path draws a path that may or may not exist.
func path(t *rapid.T, label string) string {
	return rapid.SampledFrom([]string{"a", "b", "c", "d/a", "d/b", "d", "e", "e/a", "d/e", "d/e/a"}).Draw(t, label)
}

// file draws one of the files that have a name.
func (m *model) file(t *rapid.T) *Node {
	var list []*Node
	m.disk.root.walk("", func(_ string, n *Node) {
		if !n.dir {
			list = append(list, n)
		}
	})
	if len(list) == 0 {
		t.Skip("no files")
	}
	return rapid.SampledFrom(list).Draw(t, "file")
}

func (m *model) place(p string) (entry, bool) {
	dir, name, e := m.disk.split(m.disk.root, p)
	if e != None {
		return entry{}, false
	}
	return entry{dir.inode, name}, true
}

func (m *model) create(t *rapid.T) {
	p, directory := path(t, "path"), rapid.Bool().Draw(t, "directory")
	at, _ := m.place(p)
	n, e := m.disk.create(m.disk.root, p, directory)
	if e != None {
		return
	}
	m.nodes[n.inode] = n
	if !directory {
		m.files[n.inode] = &account{}
	}
	next := maps.Clone(m.now())
	next[at] = n.inode
	m.changed(next, n.inode, at.dir)
}

func (m *model) remove(t *rapid.T) {
	p := path(t, "path")
	at, _ := m.place(p)
	if m.disk.Remove(m.disk.root, p, rapid.Bool().Draw(t, "directory")) != None {
		return
	}
	next := maps.Clone(m.now())
	inode := next[at]
	delete(next, at)
	m.changed(next, inode, at.dir)
	m.recount()
}

func (m *model) rename(t *rapid.T) {
	p, q := path(t, "old"), path(t, "new")
	from, _ := m.place(p)
	to, _ := m.place(q)
	if from == to || m.disk.Rename(m.disk.root, p, m.disk.root, q) != None {
		return
	}
	next := maps.Clone(m.now())
	inode := next[from]
	delete(next, from)
	next[to] = inode
	m.changed(next, inode, from.dir, to.dir)
	m.recount()
}

func (m *model) write(t *rapid.T) {
	n := m.file(t)
	at, size := rapid.IntRange(0, 1500).Draw(t, "at"), rapid.IntRange(1, 1500).Draw(t, "size")
	fill := rapid.Byte().Draw(t, "fill")
	if n.WriteAt(bytes.Repeat([]byte{fill}, size), at) != None {
		t.Fatal("write failed")
	}
	a := m.files[n.inode]
	for len(a.data) < at+size {
		a.may(len(a.data), 0) // a gap
		a.data = append(a.data, 0)
	}
	for k := at; k < at+size; k++ {
		a.may(k, fill)
		a.data[k] = fill
	}
	a.resized()
}

func (m *model) truncate(t *rapid.T) {
	n := m.file(t)
	size := rapid.IntRange(0, 3000).Draw(t, "size")
	if n.Truncate(size) != None {
		t.Fatal("truncate failed")
	}
	a := m.files[n.inode]
	for k := size; k < len(a.data); k++ {
		a.may(k, 0) // a later write may bring it back as a gap
	}
	a.data = a.data[:min(size, len(a.data))]
	for len(a.data) < size {
		a.may(len(a.data), 0)
		a.data = append(a.data, 0)
	}
	a.resized()
}

func (m *model) syncFile(t *rapid.T) {
	n := m.file(t)
	if n.Sync() != None {
		t.Fatal("sync failed")
	}
	m.files[n.inode].sync()
	m.synced(n.inode)
}

func (m *model) syncDirectory(t *rapid.T) {
	n, e := m.disk.Find(m.disk.root, rapid.SampledFrom([]string{"", "d", "e", "d/e"}).Draw(t, "directory"))
	if e != None || !n.dir {
		t.Skip("none there")
	}
	if n.Sync() != None {
		t.Fatal("sync failed")
	}
	m.synced(n.inode)
}

// check compares what is seen: without a loss of power nothing is ever lost.
func (m *model) check(t *rapid.T) {
	if got, want := look(m.disk), m.now(); !maps.Equal(got, want) {
		t.Fatalf("tree %v, want %v", got, want)
	}
	for inode, a := range m.files {
		got := make([]byte, len(a.data)+1)
		n, e := m.nodes[inode].ReadAt(got, 0)
		if e != None || !bytes.Equal(got[:n], a.data) {
			t.Fatalf("file %d reads otherwise than written", inode)
		}
	}
}

func (m *model) crash(t *rapid.T) {
	seed := rapid.Uint64().Draw(t, "crash")
	m.disk.Crash(rand.New(rand.NewPCG(seed, 0)))
	got := look(m.disk)
	m.checkTree(t, got)
	for inode, a := range m.files {
		if m.attached(got, inode) {
			m.checkFile(t, inode, a)
		} else {
			delete(m.files, inode)
			delete(m.nodes, inode)
		}
	}
	m.trees, m.touched, m.gone = []tree{got}, []map[uint64]bool{nil}, map[uint64]bool{}
}

func (m *model) attached(t tree, inode uint64) bool {
	for _, i := range t {
		if i == inode {
			return true
		}
	}
	return false
}

// checkTree says what must be true of a tree that survived.
func (m *model) checkTree(t *rapid.T, got tree) {
	seen := map[uint64]entry{}
	for _, at := range got.places() {
		inode := got[at]
		if other, twice := seen[inode]; twice {
			t.Fatalf("%d is in two places, %v and %v: a renaming survived by half", inode, at, other)
		}
		seen[inode] = at
		ever := false
		for _, tree := range m.trees {
			ever = ever || tree[at] == inode
		}
		if !ever {
			t.Fatalf("%d is at %v, where it never was", inode, at)
		}
	}
	for _, at := range m.trees[0].places() {
		inode := m.trees[0][at]
		if _, there := seen[inode]; !there && !m.gone[inode] {
			t.Fatalf("%d was durably at %v, was never removed, and is lost", inode, at)
		}
	}
}

// checkFile says what must be true of a file that survived: synced bytes are there, and none is invented.
func (m *model) checkFile(t *rapid.T, inode uint64, a *account) {
	got := make([]byte, 10_000)
	n, _ := m.nodes[inode].ReadAt(got, 0)
	got = got[:n]
	if n < a.size[0] || n > a.size[1] {
		t.Fatalf("file %d has %d bytes; since its sync it had %d to %d", inode, n, a.size[0], a.size[1])
	}
	for k, b := range got {
		synced := k < len(a.synced) && a.synced[k] == b
		written := k < len(a.possible) && a.possible[k][b]
		if !synced && !written {
			t.Fatalf("file %d, offset %d: byte %d was neither synced nor written later", inode, k, b)
		}
	}
	a.data = got
	a.sync()
}
