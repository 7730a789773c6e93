// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"encoding/binary"
	"fmt"
	"os"
)

// image is what the memory of a process holds when it starts: the data of its program, in a file that has no name. Processes
// map it copy-on-write, which takes a fraction of the time of writing the data, which Go's linker splits into
// thousands of pieces, into the memory of each.
type image struct {
	file *os.File // nil: the program brings its data itself
	size int      // a multiple of the page size
}

// The parts of a module that matter here (WebAssembly 1.0, section 5.5).
const (
	moduleHead       = 8
	sectionData      = 11
	sectionDataCount = 12

	opConst = 0x41
	opEnd   = 0x0b
)

// split takes the data out of a program. Where its data is of any but the plain kind, it leaves the program as it is.
func split(code []byte) ([]byte, *image, error) {
	rest, memory := withoutData(code)
	if memory == nil {
		return code, &image{}, nil
	}
	page := os.Getpagesize()
	i := &image{size: (len(memory) + page - 1) / page * page}
	if err := i.create(memory); err != nil {
		return nil, nil, fmt.Errorf("make an image of the program's data: %w", err)
	}
	return rest, i, nil
}

func (i *image) create(memory []byte) error {
	file, err := os.CreateTemp("", "fairlead-sim-")
	if err != nil {
		return err
	}
	i.file = file
	if err := os.Remove(file.Name()); err != nil {
		return err
	}
	if _, err := file.Write(memory); err != nil {
		return err
	}
	return file.Truncate(int64(i.size))
}

func (i *image) close() error {
	if i.file == nil {
		return nil
	}
	return i.file.Close()
}

// withoutData gives a module without its data, and the data; none if the module cannot do without.
func withoutData(code []byte) (rest, memory []byte) {
	if len(code) < moduleHead {
		return nil, nil
	}
	rest = append(rest, code[:moduleHead]...)
	for r := (reader{left: code[moduleHead:]}); len(r.left) > 0; {
		whole := r.left
		id, body := r.byte(), r.bytes(r.uint())
		switch {
		case r.broken:
			return nil, nil
		case id == sectionDataCount: // says that instructions may refer to data
			return nil, nil
		case id == sectionData:
			if memory = segments(body); memory == nil {
				return nil, nil
			}
		default:
			rest = append(rest, whole[:len(whole)-len(r.left)]...)
		}
	}
	return rest, memory
}

// segments lays out a data section as memory; nil if not all of it has a fixed place.
func segments(section []byte) []byte {
	r := reader{left: section}
	memory := []byte{}
	for range r.uint() {
		kind, op, at, end := r.uint(), r.byte(), r.int(), r.byte()
		data := r.bytes(r.uint())
		if r.broken || kind != 0 || op != opConst || end != opEnd {
			return nil
		}
		if short := at + len(data) - len(memory); short > 0 {
			memory = append(memory, make([]byte, short)...)
		}
		copy(memory[at:], data)
	}
	return memory
}

// reader reads a module.
type reader struct {
	left   []byte
	broken bool
}

func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.left) {
		r.broken, r.left = true, nil
		return nil
	}
	b := r.left[:n]
	r.left = r.left[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

// uint reads a number in LEB128.
func (r *reader) uint() int {
	n, length := binary.Uvarint(r.left)
	if length <= 0 || n > memoryPages<<16 {
		r.broken, r.left = true, nil
		return 0
	}
	r.left = r.left[length:]
	return int(n)
}

// int reads a number in signed LEB128 that is not negative: the sign is the second bit of the last byte.
func (r *reader) int() int {
	before := r.left
	n := r.uint()
	if used := len(before) - len(r.left); !r.broken && before[used-1]&0x40 != 0 {
		r.broken = true
	}
	return n
}
