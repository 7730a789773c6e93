// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"

	"fairlead.io/fairlead/fsm/wire"
)

// snapshotMagic opens every snapshot; its last byte is the layout, not the committed format.
const snapshotMagic = "FAIRLEAD\x01"

// maxRecordBytes bounds what a damaged length can make Restore allocate.
const maxRecordBytes = 64 << 20

// Frozen is the record at one index, ready to be written while the log goes on.
type Frozen struct{ view *View }

// Freeze takes the record as it is, in constant time.
func (s *State) Freeze() *Frozen { return &Frozen{view: s.Read()} }

// Copy gives a State of its own that begins as the record is in v, to find out what would become of it. It costs as much as
// the record is large.
func (v *View) Copy() (*State, error) {
	var whole bytes.Buffer
	if err := (&Frozen{view: v}).Write(&whole); err != nil {
		return nil, err
	}
	s := New()
	return s, s.Restore(&whole)
}

// Index is the index of the newest entry in the snapshot.
func (f *Frozen) Index() Index { return f.view.applied }

// breather is after how many records Write lets others run: encoding keeps a core busy for seconds, and where there are
// few of them Apply would otherwise wait for the scheduler to notice, 10 ms each time.
const breather = 64

// SnapshotHeader opens a snapshot, behind the magic.
type SnapshotHeader struct {
	Applied Index  `pb:"1"`
	Digest  Digest `pb:"2"`
	Format  uint32 `pb:"3"`
}

// SnapshotFooter ends a snapshot: the number of records, so that a cut file is never taken for a whole one, and
// a checksum of all bytes before it, since the digest says nothing of the header.
type SnapshotFooter struct {
	Records uint64 `pb:"1"`
	Sum     uint32 `pb:"2"` // CRC-32, Castagnoli
}

func checksum(sum uint32, b []byte) uint32 {
	return crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), b)
}

// Write gives the canonical bytes: equal records yield equal bytes. Layout: magic; the header; for each record
// the number of its table (from 1, in the order of Tables) and its bytes; number 0 and the footer. Every
// number and length is a varint.
func (f *Frozen) Write(w io.Writer) error {
	out := &framer{w: bufio.NewWriterSize(w, 1<<20)}
	out.raw([]byte(snapshotMagic))
	v := f.view
	out.value(&SnapshotHeader{Applied: v.applied, Digest: v.digest, Format: v.Group().Format})
	var n SnapshotFooter
	for i, t := range Tables() {
		v.rows.tables[t].each(func(r Record) bool {
			out.number(uint64(i) + 1)
			out.value(r)
			if n.Records++; n.Records%breather == 0 {
				runtime.Gosched()
			}
			return out.err == nil
		})
	}
	out.number(0)
	n.Sum = out.sum
	out.value(&n)
	if out.err == nil {
		out.err = out.w.Flush()
	}
	if out.err != nil {
		return fmt.Errorf("write snapshot at index %d: %w", v.applied, out.err)
	}
	return nil
}

type framer struct {
	w   *bufio.Writer
	buf []byte
	sum uint32
	err error
}

func (f *framer) raw(b []byte) {
	if f.err == nil {
		f.sum = checksum(f.sum, b)
		_, f.err = f.w.Write(b)
	}
}

func (f *framer) number(n uint64) { f.raw(binary.AppendUvarint(f.buf[:0], n)) }

func (f *framer) value(v any) {
	if f.err != nil {
		return
	}
	var b []byte
	if b, f.err = wire.Append(f.buf[:0], v); f.err != nil {
		return
	}
	var length [binary.MaxVarintLen64]byte
	f.raw(binary.AppendUvarint(length[:0], uint64(len(b))))
	f.raw(b)
	f.buf = b
}

// Restore replaces the whole State by a snapshot. It fails, and leaves the State as it was, on anything that
// is not a whole snapshot of a format that this release knows, or whose records do not sum up to its digest.
func (s *State) Restore(r io.Reader) error {
	in := &unframer{r: summed{r: bufio.NewReaderSize(r, 1<<20)}}
	next := New()
	h, err := in.restore(next)
	if err != nil {
		return fmt.Errorf("restore snapshot: %w", err)
	}
	if next.digest != h.Digest {
		return fmt.Errorf("restore snapshot at index %d: records sum up to %s, the snapshot says %s; it is damaged",
			h.Applied, next.digest, h.Digest)
	}
	next.applied = h.Applied
	s.become(next)
	return nil
}

// ReplaceBy puts a backup's record in the place of this one, after the entry that opens its next epoch was applied to it, and gives
// the outcomes of that. Readers see the one or the other. If the entry is refused, nothing is replaced. It takes no longer for a large record.
//
// The backup may be of a log that went further than this one: revisions are of another epoch from here on.
func (s *State) ReplaceBy(backup *State, renewal LogEntry) []Outcome {
	if renewal.Index <= s.applied {
		panic(fmt.Sprintf("fsm: entry %d comes after %d was applied", renewal.Index, s.applied))
	}
	backup.applied = renewal.Index - 1
	outcomes := backup.ApplyEntries([]LogEntry{renewal})[0]
	for _, o := range outcomes {
		if o.Err() != nil {
			s.applied = renewal.Index
			s.recent.remember(s.applied, s.digest)
			s.publish(nil)
			return outcomes
		}
	}
	s.become(backup)
	return outcomes
}

// become takes over all that another State holds, which is given up.
func (s *State) become(other *State) {
	s.rows, s.applied, s.digest, s.graves = other.rows, other.applied, other.digest, other.graves
	s.recent.forget()
	s.recent.remember(s.applied, s.digest)
	all := map[Table]bool{}
	for _, t := range Tables() {
		all[t] = true
	}
	s.publish(all)
}

type unframer struct {
	r   summed
	buf []byte
}

// summed keeps the checksum of what was read.
type summed struct {
	r   *bufio.Reader
	sum uint32
}

func (s *summed) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	s.sum = checksum(s.sum, b[:n])
	return n, err
}

func (s *summed) ReadByte() (byte, error) {
	b, err := s.r.ReadByte()
	if err == nil {
		s.sum = checksum(s.sum, []byte{b})
	}
	return b, err
}

func (in *unframer) restore(next *State) (SnapshotHeader, error) {
	var h SnapshotHeader
	magic := make([]byte, len(snapshotMagic))
	if _, err := io.ReadFull(&in.r, magic); err != nil || string(magic) != snapshotMagic {
		return h, fmt.Errorf("not a snapshot of this program (or a newer layout): it starts with %q", magic)
	}
	if err := in.value(&h); err != nil {
		return h, fmt.Errorf("header: %w", err)
	}
	if err := CheckFormat(h.Format); err != nil {
		return h, err
	}
	tx := next.begin()
	n, err := in.records(tx)
	if err != nil {
		return h, fmt.Errorf("record %d: %w", n+1, err)
	}
	for _, t := range tx.rows.tables {
		t.loaded()
	}
	sum := in.r.sum
	var f SnapshotFooter
	if err := in.value(&f); err != nil || f.Records != n {
		return h, fmt.Errorf("footer says %d records, %d were read (%v)", f.Records, n, err)
	}
	if f.Sum != sum {
		return h, fmt.Errorf("checksum %08x, want %08x: it is damaged", sum, f.Sum)
	}
	if _, err := in.r.ReadByte(); !errors.Is(err, io.EOF) {
		return h, fmt.Errorf("bytes after the footer")
	}
	return h, nil
}

func (in *unframer) records(tx *txn) (uint64, error) {
	tables := Tables()
	for n := uint64(0); ; n++ {
		number, err := binary.ReadUvarint(&in.r)
		if err != nil || number == 0 {
			return n, err
		}
		if number > uint64(len(tables)) {
			return n, fmt.Errorf("table number %d is unknown to this release; upgrade this member", number)
		}
		rec, err := newRecord(tables[number-1])
		if err != nil {
			return n, err
		}
		if err := in.value(rec); err != nil {
			return n, err
		}
		if err := tx.load(rec); err != nil {
			return n, err
		}
	}
}

func (in *unframer) value(v any) error {
	n, err := binary.ReadUvarint(&in.r)
	if err != nil {
		return err
	}
	if n > maxRecordBytes {
		return fmt.Errorf("length %d, at most %d is possible", n, maxRecordBytes)
	}
	if uint64(cap(in.buf)) < n {
		in.buf = make([]byte, n)
	}
	b := in.buf[:n]
	if _, err := io.ReadFull(&in.r, b); err != nil {
		return err
	}
	return wire.Decode(b, v)
}
