// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"encoding/binary"
	"time"

	"fairlead.io/fairlead/sim/disk"
)

// rootFile is the descriptor of the one preopened directory, and firstFile the first that path_open gives out.
const (
	rootFile  = 3
	firstFile = 4
)

// Types of files, and flags of descriptors, in WASI preview 1.
const (
	typeCharacter = 2
	typeDirectory = 3
	typeRegular   = 4
	typeStream    = 6

	flagAppend   = 1
	flagDataSync = 2
	flagNonblock = 4
	flagSync     = 16
)

// file is an open file.
type file struct {
	node   *disk.Node
	name   string // without the folders
	at     int
	append bool
	reads  bool
	writes bool
	syncs  bool         // each write
	listed []disk.Entry // of a directory that is being read
}

// table holds the open files by descriptor; nil where one is free. Frames have wireFile, which is never in it.
type table struct {
	open []*file
}

func newTable(root *disk.Node) table {
	return table{open: []*file{nil, nil, nil, {node: root, reads: true}}}
}

// get is the open file of a descriptor, or nil.
func (t *table) get(fd uint64) *file {
	if i := uint32(fd); i < uint32(len(t.open)) {
		return t.open[i]
	}
	return nil
}

// add gives the lowest free descriptor to a file.
func (t *table) add(f *file) uint32 {
	for i := firstFile; ; i++ {
		switch {
		case i >= len(t.open):
			t.open = append(t.open, nil)
		case i == wireFile || t.open[i] != nil:
			continue
		}
		if i != wireFile {
			t.open[i] = f
			return uint32(i)
		}
	}
}

func fdClose(p *Process, a []uint64) uint32 {
	if p.files.get(a[0]) == nil {
		return errnoIf(uint32(a[0]) > 2 && uint32(a[0]) != wireFile, badFile)
	}
	p.files.open[a[0]] = nil
	return ok
}

func fdFdstatGet(p *Process, a []uint64) uint32 {
	stat, good := p.memory.Read(uint32(a[1]), 24)
	if !good {
		return fault
	}
	clear(stat)
	binary.LittleEndian.PutUint64(stat[8:], ^uint64(0))
	binary.LittleEndian.PutUint64(stat[16:], ^uint64(0))
	f := p.files.get(a[0])
	switch {
	case f != nil && f.node.Directory():
		stat[0] = typeDirectory
	case f != nil:
		stat[0] = typeRegular
		if f.append {
			stat[2] = flagAppend
		}
	case uint32(a[0]) <= 2:
		stat[0] = typeCharacter
	case uint32(a[0]) == wireFile: // so os.NewFile makes the runtime poll it
		stat[0], stat[2] = typeStream, flagNonblock
	default:
		return badFile
	}
	return ok
}

// fdFdstatSetFlags refuses to make files and standard streams non-blocking: the runtime must not poll them.
func fdFdstatSetFlags(p *Process, a []uint64) uint32 {
	f := p.files.get(a[0])
	switch {
	case uint32(a[0]) == wireFile:
		return ok
	case f == nil:
		return badFile
	case a[1]&^flagAppend != 0:
		return invalid
	}
	f.append = a[1]&flagAppend != 0
	return ok
}

func fdFdstatSetRights(p *Process, a []uint64) uint32 {
	return errnoIf(p.files.get(a[0]) == nil, badFile)
}

func fdAdvise(p *Process, a []uint64) uint32 { return errnoIf(p.files.get(a[0]) == nil, badFile) }

func fdAllocate(p *Process, a []uint64) uint32 {
	f := p.files.get(a[0])
	if f == nil || !f.writes {
		return badFile
	}
	if size := int(a[1] + a[2]); size > f.node.Size() || size < 0 {
		return p.changed(f, f.node.Truncate(size))
	}
	return ok
}

// fdSync waits for the disk, then makes durable: who loses power while it waits has not synced. Where it would wait for ever the process is told to
// ask again, since nothing else in it would go on.
func fdSync(p *Process, a []uint64) uint32 {
	f := p.files.get(a[0])
	if f == nil {
		return badFile
	}
	return p.sync(f)
}

func (p *Process) sync(f *file) uint32 {
	if p.disk.Hangs(f.name) {
		return uint32(disk.Again)
	}
	p.sleep(p.disk.Delay())
	return uint32(f.node.Sync())
}

// sleep stalls the whole process.
func (p *Process) sleep(d time.Duration) {
	if d > 0 {
		p.park(p.spec.World.Now()+d, false)
	}
}

func fdFilestatGet(p *Process, a []uint64) uint32 {
	f := p.files.get(a[0])
	switch {
	case f != nil:
		return p.putStat(a[1], f.node)
	case uint32(a[0]) > 2 && uint32(a[0]) != wireFile:
		return badFile
	}
	stat, good := p.memory.Read(uint32(a[1]), 64)
	if good {
		clear(stat)
		stat[16] = typeCharacter
	}
	return errno(good)
}

// putStat writes a filestat.
func (p *Process) putStat(at uint64, n *disk.Node) uint32 {
	stat, good := p.memory.Read(uint32(at), 64)
	if !good {
		return fault
	}
	clear(stat)
	put := binary.LittleEndian.PutUint64
	put(stat[0:], 1) // device
	put(stat[8:], n.Inode())
	stat[16] = typeRegular
	if n.Directory() {
		stat[16] = typeDirectory
	}
	put(stat[24:], 1) // links
	put(stat[32:], uint64(n.Size()))
	for _, at := range []int{40, 48, 56} { // access, modification, change
		put(stat[at:], n.Modified())
	}
	return ok
}

func fdFilestatSetSize(p *Process, a []uint64) uint32 {
	f := p.files.get(a[0])
	switch {
	case f == nil:
		return badFile
	case !f.writes:
		return invalid
	}
	return p.changed(f, f.node.Truncate(int(a[1])))
}

func fdFilestatSetTimes(p *Process, a []uint64) uint32 {
	f := p.files.get(a[0])
	if f == nil {
		return badFile
	}
	p.setTimes(f.node, a[2], a[3])
	return ok
}

// Flags of a change of times.
const (
	setModified    = 4
	setModifiedNow = 8
)

func (p *Process) setTimes(n *disk.Node, modified, flags uint64) {
	switch {
	case flags&setModifiedNow != 0:
		n.Touch(p.nanoseconds())
	case flags&setModified != 0:
		n.Touch(modified)
	}
}

// nanoseconds is the time of day, for files.
func (p *Process) nanoseconds() uint64 { return uint64(p.clock.Wall().UnixNano()) }

// changed sets the time of a file that was changed, unless that failed.
func (p *Process) changed(f *file, e disk.Error) uint32 {
	if e == disk.None {
		f.node.Touch(p.nanoseconds())
	}
	return uint32(e)
}

// errnoIf is the result of a call that fails in one case.
func errnoIf(failed bool, e uint32) uint32 {
	if failed {
		return e
	}
	return ok
}
