// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"encoding/binary"
	"strings"

	"fairlead.io/fairlead/sim/disk"
)

// Flags of path_open.
const (
	openCreate    = 1
	openDirectory = 2
	openExclusive = 4
	openTruncate  = 8
)

// Rights that path_open asks for.
const (
	rightRead  = 1 << 1
	rightWrite = 1 << 6
)

// direntSize is of the head of an entry, before its name.
const direntSize = 24

// at gives the directory of a descriptor and a path from there.
func (p *Process) at(fd, path, size uint64) (*disk.Node, string, uint32) {
	f := p.files.get(fd)
	if f == nil {
		return nil, "", badFile
	}
	name, good := p.memory.Read(uint32(path), uint32(size))
	if !good {
		return nil, "", fault
	}
	return f.node, string(name), ok
}

func pathOpen(p *Process, a []uint64) uint32 {
	dir, path, e := p.at(a[0], a[2], a[3])
	if e != ok {
		return e
	}
	flags := disk.Flags{
		Create:    a[4]&openCreate != 0,
		Directory: a[4]&openDirectory != 0,
		Exclusive: a[4]&openExclusive != 0,
		Truncate:  a[4]&openTruncate != 0,
	}
	node, failed := p.disk.Open(dir, path, flags)
	if failed != disk.None {
		return uint32(failed)
	}
	open := &file{
		node: node, name: path[strings.LastIndexByte(path, '/')+1:], append: a[7]&flagAppend != 0, syncs: a[7]&(flagSync|flagDataSync) != 0,
		reads: a[5]&rightRead != 0, writes: a[5]&rightWrite != 0,
	}
	if node.Directory() && open.writes {
		return uint32(disk.IsDirectory)
	}
	if flags.Create && node.Modified() == 0 || flags.Truncate {
		node.Touch(p.nanoseconds())
	}
	return errno(p.put32(a[8], p.files.add(open)))
}

func pathCreateDirectory(p *Process, a []uint64) uint32 {
	dir, path, e := p.at(a[0], a[1], a[2])
	if e != ok {
		return e
	}
	return uint32(p.disk.Mkdir(dir, path))
}

func pathFilestatGet(p *Process, a []uint64) uint32 {
	dir, path, e := p.at(a[0], a[2], a[3])
	if e != ok {
		return e
	}
	n, failed := p.disk.Find(dir, path)
	if failed != disk.None {
		return uint32(failed)
	}
	return p.putStat(a[4], n)
}

func pathFilestatSetTimes(p *Process, a []uint64) uint32 {
	dir, path, e := p.at(a[0], a[2], a[3])
	if e != ok {
		return e
	}
	n, failed := p.disk.Find(dir, path)
	if failed == disk.None {
		p.setTimes(n, a[5], a[6])
	}
	return uint32(failed)
}

// pathReadlink finds that nothing is a symbolic link.
func pathReadlink(p *Process, a []uint64) uint32 {
	dir, path, e := p.at(a[0], a[1], a[2])
	if e != ok {
		return e
	}
	if _, failed := p.disk.Find(dir, path); failed != disk.None {
		return uint32(failed)
	}
	return invalid
}

func pathRemoveDirectory(p *Process, a []uint64) uint32 { return p.remove(a, true) }

func pathUnlinkFile(p *Process, a []uint64) uint32 { return p.remove(a, false) }

func (p *Process) remove(a []uint64, directory bool) uint32 {
	dir, path, e := p.at(a[0], a[1], a[2])
	if e != ok {
		return e
	}
	return uint32(p.disk.Remove(dir, path, directory))
}

func pathRename(p *Process, a []uint64) uint32 {
	oldDir, oldPath, e := p.at(a[0], a[1], a[2])
	if e != ok {
		return e
	}
	newDir, newPath, e := p.at(a[3], a[4], a[5])
	if e != ok {
		return e
	}
	return uint32(p.disk.Rename(oldDir, oldPath, newDir, newPath))
}

// fdReaddir fills a buffer with entries from a cookie on, which is a place in the list; the last one may be cut, which
// tells the reader that there is more.
func fdReaddir(p *Process, a []uint64) uint32 {
	f := p.files.get(a[0])
	switch {
	case f == nil:
		return badFile
	case !f.node.Directory():
		return uint32(disk.NoDirectory)
	}
	buffer, good := p.memory.Read(uint32(a[1]), uint32(a[2]))
	if !good {
		return fault
	}
	if a[3] == 0 || f.listed == nil {
		f.listed = f.node.Entries()
	}
	used := 0
	for k := a[3]; k < uint64(len(f.listed)) && used < len(buffer); k++ {
		used += copy(buffer[used:], dirent(f.listed[k], k+1))
	}
	return errno(p.put32(a[4], uint32(used)))
}

// dirent is an entry as WASI writes it.
func dirent(e disk.Entry, next uint64) []byte {
	d := make([]byte, direntSize, direntSize+len(e.Name))
	binary.LittleEndian.PutUint64(d[0:], next)
	binary.LittleEndian.PutUint64(d[8:], e.Inode())
	binary.LittleEndian.PutUint32(d[16:], uint32(len(e.Name)))
	d[20] = typeRegular
	if e.Directory() {
		d[20] = typeDirectory
	}
	return append(d, e.Name...)
}

func fdPrestatGet(p *Process, a []uint64) uint32 {
	if a[0] != rootFile {
		return badFile
	}
	return errno(p.put32(a[1], 0) && p.put32(a[1]+4, uint32(len("/"))))
}

func fdPrestatDirName(p *Process, a []uint64) uint32 {
	if a[0] != rootFile {
		return badFile
	}
	return errno(a[2] >= 1 && p.memory.WriteString(uint32(a[1]), "/"))
}
