// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"runtime/debug"
	"sync"
)

// A backup is restored through the log, like whatever else the group agrees on: entries of this package's own bring the record in parts,
// and one more has every member take it in the place of the former one. What stands in such an entry, in front of its body:
//
//	0x00      what no entry of the record begins with, since that is protobuf and has no field 0
//	1 byte    what it is: a step
//
// The bodies: of begin and abort what tells one restore from another; of a part some bytes of the gzipped state, of the last one none; of finish a finish, in JSON.
type restoreStep byte

const (
	stepBegin restoreStep = iota + 1
	stepPart
	stepFinish
	stepAbort
)

const stepMark = 0x00

// finish says what was brought, and what opens the next epoch.
type finish struct {
	Sum     []byte `json:"sum"`     // SHA-256 of the state
	Renewal []byte `json:"renewal"` // an entry of the record
}

// entry gives a log entry.
func (s restoreStep) entry(body []byte) []byte { return append([]byte{stepMark, byte(s)}, body...) }

// stepOf tells an entry of this package from one of the record.
func stepOf(data []byte) (s restoreStep, body []byte, ok bool) {
	if len(data) < 2 || data[0] != stepMark {
		return 0, nil, false
	}
	return restoreStep(data[1]), data[2:], true
}

// errNotStaged says that a step came without those before it: somebody else led in between, or it was aborted.
var errNotStaged = errors.New("what was brought of the backup before was given up")

// staging is a record on its way. Every member has one alike, while the record that it is to replace is in use. It is read by a goroutine
// as it comes, so that nothing is left to do at the end that takes long.
//
// Nothing of it is in snapshots, and none is taken meanwhile: who starts again finds it in the log. It ends with the term of the leader
// that brings it: another one's entries come behind.
type staging struct {
	id      []byte
	term    uint64
	in      *inbox
	machine Machine
	sum     hash.Hash
	done    chan struct{} // closed once the state was read, or cannot be
	err     error         // why it cannot be read; once done is closed
}

func newStaging(id []byte, term uint64, machine Machine) *staging {
	s := &staging{id: id, term: term, in: newInbox(), machine: machine, sum: sha256.New(), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.err = s.read(s.in)
		s.in.end(errNotStaged) // nobody reads what comes yet
	}()
	return s
}

func (s *staging) read(out io.Reader) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{In: "read a backup", Value: v, Stack: debug.Stack()}
		}
	}()
	unzipped, err := gzip.NewReader(out)
	if err != nil {
		return err
	}
	state := io.TeeReader(unzipped, s.sum)
	if err := s.machine.Restore(state); err != nil {
		return err
	}
	if n, err := io.Copy(io.Discard, state); err != nil || n > 0 { // to the checksum behind it
		return errors.Join(err, fmt.Errorf("%d bytes behind the state", n))
	}
	return nil
}

// part takes some bytes, or the end. What is wrong with them shows in the end.
func (s *staging) part(body []byte) {
	if len(body) == 0 {
		s.in.end(io.EOF)
		return
	}
	s.in.put(body)
}

// whole waits until all was read, and tells whether it is what was sent.
func (s *staging) whole(sum []byte) error {
	s.in.end(io.ErrUnexpectedEOF) // if the last part did not come
	<-s.done
	if s.err != nil {
		return s.err
	}
	if !bytes.Equal(s.sum.Sum(nil), sum) {
		return errors.New("it is not what the leader sent")
	}
	return nil
}

// drop gives up what was brought.
func (s *staging) drop() { s.in.end(errNotStaged) }

// inbox is what came and was not read yet. Whoever brings it never waits for who reads: that is the leader's to do, for its own reading.
type inbox struct {
	mu    sync.Mutex
	parts [][]byte
	err   error         // behind them; nil while there may be more
	more  chan struct{} // of capacity 1
}

func newInbox() *inbox { return &inbox{more: make(chan struct{}, 1)} }

func (b *inbox) put(part []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.parts = append(b.parts, part)
	}
	b.signal()
}

// end says what is behind the parts, once. Anything but the end itself is of those that were not read yet, too.
func (b *inbox) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
		if !errors.Is(err, io.EOF) {
			b.parts = nil
		}
	}
	b.signal()
}

func (b *inbox) signal() {
	select {
	case b.more <- struct{}{}:
	default:
	}
}

// Read implements io.Reader, for one reader.
func (b *inbox) Read(p []byte) (int, error) {
	for {
		b.mu.Lock()
		if len(b.parts) > 0 {
			n := copy(p, b.parts[0])
			if b.parts[0] = b.parts[0][n:]; len(b.parts[0]) == 0 {
				b.parts = b.parts[1:]
			}
			b.mu.Unlock()
			return n, nil
		}
		err := b.err
		b.mu.Unlock()
		if err != nil {
			return 0, err
		}
		<-b.more
	}
}

// stepLocked takes a step. The answer is nil, an error if nothing came of the step on any member, or the outcomes of the renewal.
func (a *adapter) stepLocked(s restoreStep, body []byte, index Index, term uint64) any {
	switch {
	case s == stepBegin:
		a.unstageLocked()
		a.staging = newStaging(body, term, a.newMachine())
		return nil
	case s == stepAbort:
		if a.staging != nil && bytes.Equal(a.staging.id, body) { // another one may have begun meanwhile
			a.unstageLocked()
		}
		return nil
	case a.staging == nil:
		return errNotStaged
	case s == stepPart:
		a.staging.part(body)
		return nil
	case s == stepFinish:
		return a.finishLocked(body, index, term)
	default:
		panic(fmt.Sprintf("entry %d: step %d is not known to this release", index, s))
	}
}

// finishLocked puts what was brought in the place of the record. The leader proposes it once it could read all of it itself. So a member
// that cannot is another one than the rest, and ends.
func (a *adapter) finishLocked(body []byte, index Index, term uint64) any {
	brought := a.staging
	defer func() { a.staging = nil }()
	var f finish
	if err := json.Unmarshal(body, &f); err != nil {
		panic(fmt.Sprintf("entry %d: %v", index, err))
	}
	a.mu.Unlock() // nobody else applies anything; whoever asks how it stands shall not wait for this
	err := brought.whole(f.Sum)
	a.mu.Lock()
	if err != nil {
		panic(fmt.Sprintf("entry %d: the backup that the group restores: %v", index, err))
	}
	a.replacing()
	return a.machine.ReplaceBy(brought.machine, LogEntry{Index: index, Term: term, Data: f.Renewal})
}

// unstageLocked gives up what was brought so far, if anything was.
func (a *adapter) unstageLocked() {
	if a.staging != nil {
		a.staging.drop()
		a.staging = nil
	}
}
