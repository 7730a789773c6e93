// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"encoding/binary"

	"fairlead.io/fairlead/sim/disk"
)

// maxLine bounds a line of output, in bytes; what is longer is broken.
const maxLine = 64 << 10

// vectors calls do for each part of memory that a read or write names, until it says no.
func (p *Process) vectors(at, count uint64, do func(part []byte) bool) uint32 {
	list, good := p.memory.Read(uint32(at), uint32(count)*8)
	if !good {
		return fault
	}
	for ; len(list) > 0; list = list[8:] {
		part, good := p.memory.Read(binary.LittleEndian.Uint32(list), binary.LittleEndian.Uint32(list[4:]))
		if !good {
			return fault
		}
		if !do(part) {
			break
		}
	}
	return ok
}

func fdRead(p *Process, a []uint64) uint32 {
	f := p.files.get(a[0])
	switch {
	case f != nil:
		return p.read(f, a[1], a[2], &f.at, a[3])
	case a[0] == 0: // stdin is empty
		return errno(p.put32(a[3], 0))
	case uint32(a[0]) == wireFile:
		return p.readWire(a[1], a[2], a[3])
	}
	return badFile
}

func fdPread(p *Process, a []uint64) uint32 {
	f, at := p.files.get(a[0]), int(a[3])
	if f == nil {
		return badFile
	}
	return p.read(f, a[1], a[2], &at, a[4])
}

// read fills vectors from an offset, which moves on.
func (p *Process) read(f *file, vectors, count uint64, at *int, result uint64) uint32 {
	if !f.reads {
		return badFile
	}
	total, failed := 0, disk.None
	e := p.vectors(vectors, count, func(part []byte) bool {
		n, e := f.node.ReadAt(part, *at)
		*at, total, failed = *at+n, total+n, e
		return e == disk.None && n == len(part)
	})
	switch {
	case e != ok:
		return e
	case failed != disk.None:
		return uint32(failed)
	}
	return errno(p.put32(result, uint32(total)))
}

func fdWrite(p *Process, a []uint64) uint32 {
	f := p.files.get(a[0])
	switch {
	case f != nil:
		if f.append {
			f.at = f.node.Size()
		}
		return p.write(f, a[1], a[2], &f.at, a[3])
	case uint32(a[0]) == 1 || uint32(a[0]) == 2:
		return p.print(int(a[0]), a[1], a[2], a[3])
	}
	return badFile
}

func fdPwrite(p *Process, a []uint64) uint32 {
	f, at := p.files.get(a[0]), int(a[3])
	if f == nil {
		return badFile
	}
	return p.write(f, a[1], a[2], &at, a[4])
}

// write writes vectors to an offset, which moves on.
func (p *Process) write(f *file, vectors, count uint64, at *int, result uint64) uint32 {
	if !f.writes {
		return badFile
	}
	total, failed := 0, disk.None
	e := p.vectors(vectors, count, func(part []byte) bool {
		if failed = f.node.WriteAt(part, *at); failed != disk.None {
			return false
		}
		*at, total = *at+len(part), total+len(part)
		return true
	})
	switch {
	case e != ok:
		return e
	case failed != disk.None && total == 0:
		return uint32(failed)
	}
	f.node.Touch(p.nanoseconds())
	if f.syncs {
		if e := p.sync(f); e != ok {
			return e
		}
	}
	return errno(p.put32(result, uint32(total)))
}

// print takes output, and tells of each line.
func (p *Process) print(stream int, vectors, count, result uint64) uint32 {
	total := 0
	e := p.vectors(vectors, count, func(part []byte) bool {
		total += len(part)
		p.printed(stream, part)
		return true
	})
	if e != ok {
		return e
	}
	return errno(p.put32(result, uint32(total)))
}

// printed takes a piece of output.
func (p *Process) printed(stream int, part []byte) {
	line := &p.lines[stream-1]
	for {
		n := bytes.IndexByte(part, '\n')
		if n < 0 {
			break
		}
		*line = append(*line, part[:n]...)
		p.tell(stream)
		part = part[n+1:]
	}
	*line = append(*line, part...)
	if len(*line) >= maxLine {
		p.tell(stream)
	}
}

// tell hands on the line that is complete.
func (p *Process) tell(stream int) {
	line := string(p.lines[stream-1])
	p.lines[stream-1] = p.lines[stream-1][:0]
	if p.spec.Line != nil {
		p.spec.Line(stream, line)
	}
}

// flush tells of lines that were not ended.
func (p *Process) flush() {
	for k := range p.lines {
		if len(p.lines[k]) > 0 {
			p.tell(k + 1)
		}
	}
}

func fdSeek(p *Process, a []uint64) uint32 {
	f := p.files.get(a[0])
	if f == nil {
		return badFile
	}
	to := int(a[1])
	switch a[2] {
	case 0:
	case 1:
		to += f.at
	case 2:
		to += f.node.Size()
	default:
		return invalid
	}
	if to < 0 {
		return invalid
	}
	f.at = to
	if to == 0 {
		f.listed = nil
	}
	return errno(p.put64(a[3], uint64(to)))
}

func fdTell(p *Process, a []uint64) uint32 {
	f := p.files.get(a[0])
	if f == nil {
		return badFile
	}
	return errno(p.put64(a[1], uint64(f.at)))
}
