// SPDX-License-Identifier: Apache-2.0

package store

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"

	"github.com/hashicorp/raft"
)

// A folder that is put back to an earlier state has forgotten what it promised, and nothing inside it can tell. A Floor is outside of it, in
// a place that a boot of the machine loses and a restored volume does not bring back. It has what was kept in the folder before anybody
// could be told of it, so that a folder below it is an older one.

// Position is where a log ends: its newest entry. Of two logs of one server the later one has the greater position.
type Position struct{ Term, Index uint64 }

// Before tells whether a log that ends at p lacks what one that ends at q may have.
func (p Position) Before(q Position) bool {
	return p.Term < q.Term || p.Term == q.Term && p.Index < q.Index
}

func (p Position) String() string { return fmt.Sprintf("entry %d of term %d", p.Index, p.Term) }

// Promises are what a server may have told others of itself, and has to keep.
type Promises struct {
	Term  uint64   // it follows nobody of an older one
	Voted uint64   // the newest term in which it gave its vote
	For   uint32   // a checksum of whom it gave that vote, 0 while nobody is known
	Last  Position // it holds all entries up to here
}

// Lack tells what kept lacks of what was promised, empty if nothing.
func (p Promises) Lack(kept Promises) string {
	switch {
	case p.Last.Term == math.MaxUint64:
		return "other members knew more of this server than is in it"
	case kept.Last.Before(p.Last):
		return fmt.Sprintf("it ends at %s, and this server once acknowledged %s", kept.Last, p.Last)
	case kept.Term < p.Term:
		return fmt.Sprintf("it knows of term %d, and this server once followed in term %d", kept.Term, p.Term)
	case kept.Voted < p.Voted, kept.Voted == p.Voted && p.For != 0 && kept.For != p.For:
		return fmt.Sprintf("the newest vote in it is of term %d, and this server once gave another one in term %d", kept.Voted, p.Voted)
	default:
		return ""
	}
}

// Floor is what a server promised since its machine booted. A nil *Floor keeps nothing.
type Floor struct {
	path  string
	stamp [sha256.Size]byte // whose it is, and of which boot

	mu        sync.Mutex
	known     bool     // there is one, of this boot
	file      *os.File // nil until Begin
	sequence  uint64
	promises  Promises
	condemned bool
}

const (
	// A floor is written to two places in turn: one of them is whole, wherever the process ends.
	floorSlot  = 128
	floorBytes = 8 + 8 + 8 + 4 + 8 + 8 + sha256.Size + 4

	remedyFloor = "make that folder exist, writable and with free space for the user that runs this member, or name another one that a boot loses (floorDir)"
)

// OpenFloor reads the floor of a server, in a folder that a boot of the machine loses. Boot names the boot: a floor of another one counts as
// lost, as some of its changes may be, and so does one that cannot be read.
func OpenFloor(dir, server, boot string) *Floor {
	f := &Floor{path: filepath.Join(dir, server+".floor"), stamp: sha256.Sum256([]byte(server + "\x00" + boot))}
	raw, err := os.ReadFile(f.path)
	if err != nil {
		return f
	}
	for at := 0; at+floorBytes <= len(raw); at += floorSlot {
		if sequence, promises, ok := f.decode(raw[at : at+floorBytes]); ok && sequence > f.sequence {
			f.sequence, f.promises, f.known = sequence, promises, true
		}
	}
	return f
}

// Known tells whether there is a floor.
func (f *Floor) Known() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known
}

// Promises is what is known to be promised.
func (f *Floor) Promises() Promises {
	if f == nil {
		return Promises{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.promises
}

// Hold takes what the folder of this server holds for what is promised. Nothing is written yet.
func (f *Floor) Hold(kept Promises) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.promises = kept
}

// Begin writes what is promised, and from then on whatever changes of it. There is a floor from then on, and none if that fails: what is there
// may be too low, where it cannot be removed either.
//
// Errors: *Error.
func (f *Floor) Begin() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.begin()
}

func (f *Floor) begin() error {
	if err := f.make(); err != nil {
		f.known = false
		return &Error{Path: f.path, Op: "make the floor", Remedy: remedyFloor, Err: errors.Join(err, f.drop())}
	}
	f.known = true
	return nil
}

// make makes the file, whole or not at all.
func (f *Floor) make() error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(f.path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	f.sequence++
	raw := make([]byte, 2*floorSlot) // both places: a later write needs no room
	f.encode(raw[:0:floorBytes])
	_, err = file.WriteAt(raw, 0)
	if err == nil {
		err = os.Rename(f.path+".new", f.path)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	if f.file != nil {
		err = f.file.Close()
	}
	f.file = file
	return err
}

// Condemn notes for good that the folder of this server is older than what it promised.
func (f *Floor) Condemn() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.promises, f.condemned = Promises{Last: Position{Term: math.MaxUint64}}, true
	return f.begin()
}

// Forget removes the floor: who recovers a folder takes what there is for all that ever was.
func (f *Floor) Forget() error {
	if f == nil {
		return nil
	}
	if err := f.drop(); err != nil {
		return &Error{Path: f.path, Op: "forget the floor", Remedy: remedyFloor, Err: err}
	}
	return nil
}

// drop removes the file, if there is one. A floor that is not there is asked about, and one that is too low is believed: what cannot be kept any
// more must not stay.
func (f *Floor) drop() error {
	if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Close gives the file back. The floor stays.
func (f *Floor) Close() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	file := f.file
	f.file = nil
	return file.Close()
}

// change changes what is promised, and returns once that is kept.
func (f *Floor) change(change func(*Promises)) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.promises
	change(&f.promises)
	if f.condemned {
		f.promises = was
	}
	if f.file == nil || f.promises == was {
		return nil
	}
	f.sequence++
	var raw [floorBytes]byte
	_, err := f.file.WriteAt(f.encode(raw[:0]), int64(f.sequence%2)*floorSlot)
	if err == nil {
		return nil
	}
	return &Error{Path: f.path, Op: "write the floor", Remedy: remedyFloor, Err: errors.Join(err, f.drop())}
}

func (f *Floor) encode(raw []byte) []byte {
	p := f.promises
	for _, n := range []uint64{f.sequence, p.Term, p.Voted} {
		raw = binary.BigEndian.AppendUint64(raw, n)
	}
	raw = binary.BigEndian.AppendUint32(raw, p.For)
	raw = binary.BigEndian.AppendUint64(raw, p.Last.Term)
	raw = binary.BigEndian.AppendUint64(raw, p.Last.Index)
	raw = append(raw, f.stamp[:]...)
	return binary.BigEndian.AppendUint32(raw, crc32.Checksum(raw, crc32.MakeTable(crc32.Castagnoli)))
}

func (f *Floor) decode(raw []byte) (sequence uint64, p Promises, ok bool) {
	body, sum := raw[:floorBytes-4], raw[floorBytes-4:]
	if binary.BigEndian.Uint32(sum) != crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)) ||
		[sha256.Size]byte(body[len(body)-sha256.Size:]) != f.stamp {
		return 0, p, false
	}
	number := func(at int) uint64 { return binary.BigEndian.Uint64(body[at:]) }
	p = Promises{Term: number(8), Voted: number(16), For: binary.BigEndian.Uint32(body[24:]), Last: Position{Term: number(28), Index: number(36)}}
	return number(0), p, true
}

// voteSum names a candidate in a floor.
func voteSum(candidate []byte) uint32 {
	if len(candidate) == 0 {
		return 0
	}
	return crc32.Checksum(candidate, crc32.MakeTable(crc32.Castagnoli))
}

// promiseEntries notes entries that the log holds by now.
func (g *Guard) promiseEntries(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	last := logs[len(logs)-1]
	return g.floor.change(func(p *Promises) { p.Last = Position{last.Term, last.Index} })
}

// promiseSnapshot notes a snapshot that is whole by now.
func (g *Guard) promiseSnapshot(last Position) error {
	return g.floor.change(func(p *Promises) {
		if p.Last.Before(last) {
			p.Last = last
		}
	})
}

// withdrawEntries notes that the end of the log is about to be cut: by a leader of a newer term, whose log has other entries there, so that
// nothing of it was ever committed; or in full, behind a snapshot.
func (g *Guard) withdrawEntries(first, last uint64) error {
	if g.floor == nil {
		return nil
	}
	if end, err := g.stores.Log.LastIndex(); err != nil || last < end {
		return err
	}
	var before Position
	if list, err := g.stores.Snapshots.List(); err != nil {
		return err
	} else if len(list) > 0 {
		before = Position{list[0].Term, list[0].Index}
	}
	if first > before.Index+1 {
		var l raft.Log
		if err := g.stores.Log.GetLog(first-1, &l); err == nil {
			before = Position{l.Term, l.Index}
		} else if !errors.Is(err, raft.ErrLogNotFound) {
			return err
		}
	}
	return g.floor.change(func(p *Promises) { p.Last = before })
}

// promiseNumber notes a term, or that of a vote, that was kept.
func (g *Guard) promiseNumber(key []byte, value uint64) error {
	return g.floor.change(func(p *Promises) {
		switch string(key) {
		case keyTerm:
			p.Term = value
		case keyVoted:
			p.Voted, p.For = value, 0 // for whom is kept next
		}
	})
}

// promiseText notes whom a vote was given to.
func (g *Guard) promiseText(key, value []byte) error {
	if string(key) != keyVotedFor {
		return nil
	}
	return g.floor.change(func(p *Promises) { p.For = voteSum(value) })
}
