// SPDX-License-Identifier: Apache-2.0

// Package journal keeps a member's raft log and stable values in one append-only file, for platforms without the memory
// maps that bbolt needs. It takes the place of the real log in simulated worlds, and promises what that promises: what
// a method wrote is on disk when it returns, and a file that was cut off while it was written is whole up to there.
//
// Every record is its length, its CRC and its bytes. A last record that is cut short or does not fit its CRC was never
// acknowledged, and goes; one before others that does not fit is damage, and an error. Start reading at Open.
package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/cluster/store/disk"
)

// Kinds of records.
const (
	kindEntry  byte = 1 // index, term, type, time, extensions, data
	kindDelete byte = 2 // first and last index
	kindSet    byte = 3 // key, value
)

const (
	recordHead = 8 // length and CRC
	// rewriteAt is the size from which on a file that is mostly garbage is written anew.
	rewriteAt = 256 << 10
)

// errNotFound is in the words that raft compares with (store.NotFound).
var errNotFound = errors.New("not found")

// Journal is a raft.LogStore and raft.StableStore.
type Journal struct {
	writing     sync.Mutex // one write at a time, which may hang; reads go on meanwhile
	path        string
	file        *os.File
	size, live  int // bytes of the file, and of those what is still needed, about
	entries     map[uint64]*raft.Log
	first, last uint64
	values      map[string][]byte
}

var _ disk.Log = (*Journal)(nil)

// Make makes an empty journal where there is none.
func Make(path string) (disk.Log, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fault(path, "make the log", err)
	}
	if err := durable(f); err != nil {
		return nil, fault(path, "make the log", err)
	}
	return newJournal(path, f), nil
}

// Open opens a journal that was made. Errors: *store.Error, with store.ErrCorrupt for damage.
func Open(path string) (disk.Log, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return nil, fault(path, "open the log", err)
	}
	j := newJournal(path, f)
	raw, err := io.ReadAll(f)
	if err == nil {
		err = j.replay(raw)
	}
	if err == nil && j.size < len(raw) {
		err = f.Truncate(int64(j.size))
	}
	if err == nil {
		err = durable(f) // what a process wrote that was then killed may not be on disk yet, and counts from now on
	}
	if err == nil {
		_, err = f.Seek(int64(j.size), io.SeekStart)
	}
	if err != nil {
		_ = f.Close() // the first error counts
		return nil, fault(path, "read the log", err)
	}
	return j, nil
}

func newJournal(path string, f *os.File) *Journal {
	return &Journal{path: path, file: f, entries: map[uint64]*raft.Log{}, values: map[string][]byte{}}
}

func fault(path, op string, err error) error {
	return &store.Error{Path: path, Op: op, Remedy: store.RemedyReplace, Err: err}
}

// replay takes in what the file holds, up to a record that was being written when the power failed.
func (j *Journal) replay(raw []byte) error {
	rest := raw
	for len(rest) >= recordHead {
		n := int(binary.LittleEndian.Uint32(rest))
		if n > len(rest)-recordHead {
			break
		}
		payload := rest[recordHead : recordHead+n]
		if crc32.ChecksumIEEE(payload) != binary.LittleEndian.Uint32(rest[4:]) {
			if len(rest) == recordHead+n {
				break
			}
			return fmt.Errorf("record at byte %d: %w", j.size, store.ErrCorrupt)
		}
		if err := j.apply(payload); err != nil {
			return fmt.Errorf("record at byte %d: %w", j.size, err)
		}
		j.size += recordHead + n
		rest = rest[recordHead+n:]
	}
	return nil
}

func (j *Journal) apply(payload []byte) error {
	d := decoder{b: payload}
	switch kind := d.byte(); kind {
	case kindEntry:
		e := &raft.Log{Index: d.number(), Term: d.number(), Type: raft.LogType(d.byte())}
		if at := int64(d.number()); at != 0 {
			e.AppendedAt = time.Unix(0, at)
		}
		e.Extensions, e.Data = d.bytes(), d.bytes()
		if d.bad {
			return store.ErrCorrupt
		}
		j.keep(e, recordHead+len(payload))
	case kindDelete:
		first, last := d.number(), d.number()
		if d.bad {
			return store.ErrCorrupt
		}
		j.drop(first, last)
	case kindSet:
		key, value := d.bytes(), d.bytes()
		if d.bad {
			return store.ErrCorrupt
		}
		j.values[string(key)] = value
	default:
		return fmt.Errorf("kind %d: %w", kind, store.ErrCorrupt)
	}
	return nil
}

func (j *Journal) keep(e *raft.Log, size int) {
	if j.first == 0 || e.Index < j.first {
		j.first = e.Index
	}
	j.last = max(j.last, e.Index)
	j.entries[e.Index] = e
	j.live += size
}

// drop takes entries out at one of the ends, as raft does.
func (j *Journal) drop(first, last uint64) {
	for i := first; i <= last; i++ {
		if e := j.entries[i]; e != nil {
			j.live -= recordHead + len(e.Data) + len(e.Extensions)
			delete(j.entries, i)
		}
	}
	switch {
	case len(j.entries) == 0:
		j.first, j.last, j.live = 0, 0, 0
	case first <= j.first:
		j.first = last + 1
	default:
		j.last = first - 1
	}
}

func encodeEntry(b []byte, e *raft.Log) []byte {
	b = binary.AppendUvarint(append(b, kindEntry), e.Index)
	b = append(binary.AppendUvarint(b, e.Term), byte(e.Type))
	at := uint64(0)
	if !e.AppendedAt.IsZero() {
		at = uint64(e.AppendedAt.UnixNano())
	}
	b = appendBytes(binary.AppendUvarint(b, at), e.Extensions)
	return appendBytes(b, e.Data)
}

func encodeDelete(first, last uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint([]byte{kindDelete}, first), last)
}

func encodeSet(key, value []byte) []byte {
	return appendBytes(appendBytes([]byte{kindSet}, key), value)
}

func appendBytes(b, data []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(data))), data...)
}

// record frames a payload.
func record(b, payload []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(payload))
	return append(b, payload...)
}

// write appends records and has them on disk when it returns.
func (j *Journal) write(records []byte) error {
	if _, err := j.file.Write(records); err != nil {
		return fault(j.path, "write the log", err)
	}
	if err := durable(j.file); err != nil {
		return fault(j.path, "sync the log", err)
	}
	j.size += len(records)
	return nil
}

// askAgain is how often a disk that hangs is asked.
const askAgain = 10 * time.Millisecond

// durable has a file on disk when it returns. While the disk hangs it waits, and the rest of the process goes on.
func durable(f *os.File) error {
	for {
		err := f.Sync()
		if !errors.Is(err, syscall.EAGAIN) {
			return err
		}
		time.Sleep(askAgain)
	}
}

// decoder reads a payload; after the first mistake it reads nothing but zeros.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.bad = true
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) bytes() []byte {
	n := d.number()
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	v := bytes.Clone(d.b[:n])
	d.b = d.b[n:]
	if len(v) == 0 {
		return nil
	}
	return v
}
