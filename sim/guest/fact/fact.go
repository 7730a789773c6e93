// SPDX-License-Identifier: Apache-2.0

// Package fact is what a simulated process tells its world about itself, so that checkers need not guess. Guests encode
// facts, the host decodes them into events. Nothing in a process depends on them.
package fact

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Kind says which fact it is.
type Kind uint32

// The kinds, each with the type of its fact.
const (
	KindApplied  Kind = iota + 1 // Applied
	KindRestored                 // Restored
	KindLeading                  // Leading
	KindContact                  // Contact
	KindActed                    // Acted
	KindDrive                    // Drive
	KindSpeaking                 // Speaking
	KindBarred                   // Barred
	KindSends                    // Sends
	KindHolds                    // Holds
	KindAnswered                 // Answered
)

// Fact is one of the types below.
type Fact interface{ Kind() Kind }

// Applied says that the log entry at Index was applied, and what digest the record has after it.
type Applied struct {
	Index  uint64
	Term   uint64
	Digest string
	Entry  []byte
}

// Restored says that the record was replaced by a snapshot. Snapshot is all of it where it may be of another life of the
// group, of which the log tells nothing.
type Restored struct {
	Index    uint64
	Digest   string
	Snapshot []byte
}

// Leading says that this member works as leader of a term, or does not any more.
type Leading struct {
	Term uint64
	On   bool
}

// Contact says how this member stands with the group.
type Contact struct {
	Quorum          bool
	Commit, Applied uint64
}

// Acted says up to which revision an agent carried out what it was told.
type Acted struct{ Epoch, Index uint64 }

// Drive is what a member knows of a call to a driver: that it was sent, and what it heard. See event.Drive.
type Drive struct {
	Driver, Phase, Action      string
	Balancer, Address, Binding string
	Epoch, Index               uint64 // of the attempt
	Result                     string
}

// Speaking says that the process of this member's BGP speaker runs from now on, or has ended: Why, or because the member wanted so.
type Speaking struct {
	On  bool
	Why string
}

// Barred says that a peer was refused, or that what was open with it was ended, since its certificate was revoked.
type Barred struct{ Peer, Serial string }

// Sends says that this member sends another one a snapshot, which ends at Index.
type Sends struct {
	To    string
	Index uint64
}

// Holds says how far the log or the newest snapshot goes that this member found in its folder.
type Holds struct{ Last uint64 }

// Answered says that another member gave this one its vote, or followed it, for the first time since that failed last; Does is "votes for" or "follows". Took
// is how long the answer took at least.
type Answered struct {
	From, Does string
	Took       time.Duration
}

// Kind implements Fact.
func (Applied) Kind() Kind  { return KindApplied }
func (Restored) Kind() Kind { return KindRestored }
func (Leading) Kind() Kind  { return KindLeading }
func (Contact) Kind() Kind  { return KindContact }
func (Acted) Kind() Kind    { return KindActed }
func (Drive) Kind() Kind    { return KindDrive }
func (Speaking) Kind() Kind { return KindSpeaking }
func (Barred) Kind() Kind   { return KindBarred }
func (Sends) Kind() Kind    { return KindSends }
func (Holds) Kind() Kind    { return KindHolds }
func (Answered) Kind() Kind { return KindAnswered }

// Encode gives the bytes of a fact.
func Encode(f Fact) []byte {
	if a, ok := f.(Applied); ok { // there are many
		b := binary.AppendUvarint(make([]byte, 0, len(a.Entry)+len(a.Digest)+16), a.Index)
		b = binary.AppendUvarint(b, a.Term)
		b = append(binary.AppendUvarint(b, uint64(len(a.Digest))), a.Digest...)
		return append(b, a.Entry...)
	}
	b, err := json.Marshal(f)
	if err != nil {
		panic(fmt.Sprintf("encode fact: %v", err)) // plain structs always can be
	}
	return b
}

// Decode reads a fact of a kind.
func Decode(kind Kind, b []byte) (Fact, error) {
	switch kind {
	case KindApplied:
		return decodeApplied(b)
	case KindRestored:
		return plain[Restored](b)
	case KindLeading:
		return plain[Leading](b)
	case KindContact:
		return plain[Contact](b)
	case KindActed:
		return plain[Acted](b)
	case KindDrive:
		return plain[Drive](b)
	case KindSpeaking:
		return plain[Speaking](b)
	case KindBarred:
		return plain[Barred](b)
	case KindSends:
		return plain[Sends](b)
	case KindHolds:
		return plain[Holds](b)
	case KindAnswered:
		return plain[Answered](b)
	}
	return nil, fmt.Errorf("fact of unknown kind %d", kind)
}

func plain[T Fact](b []byte) (Fact, error) {
	var f T
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("fact of kind %d: %w", f.Kind(), err)
	}
	return f, nil
}

func decodeApplied(b []byte) (Fact, error) {
	var numbers [3]uint64 // index, term, length of the digest
	for i := range numbers {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, errCut
		}
		numbers[i], b = v, b[n:]
	}
	size := numbers[2]
	if size > uint64(len(b)) {
		return nil, errCut
	}
	return Applied{Index: numbers[0], Term: numbers[1], Digest: string(b[:size]), Entry: append([]byte(nil), b[size:]...)}, nil
}

var errCut = errors.New("fact of an applied entry: cut short")
