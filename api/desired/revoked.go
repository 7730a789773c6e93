// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/fsm"
)

// Bounds of what agents take for a list of revocations. They are those of the record, and those of what a certificate can have.
const (
	maxRevoked      = 10_000
	maxRevokedName  = 253
	maxSerialDigits = 42
	// maxRevokedBytes is more than a list within these bounds has, encoded.
	maxRevokedBytes = 4 << 20
)

// Revoked is which members nobody shall deal with, as of a revision. It is immutable. The zero Revoked has nothing against anybody.
type Revoked struct {
	Revision fsm.Revision

	members map[string]int64 // by name: certificates of earlier than that, seconds since 1970; 0 is all
	serials map[string]struct{}
}

// RevokedMessage is what the record has of revocations that can be about members' certificates.
func RevokedMessage(v *fsm.View) *fairleadv1.RevokedMembers {
	m := &fairleadv1.RevokedMembers{Revision: RevisionMessage(v.Revision())}
	for _, r := range fsm.List[*fsm.Revocation](v, fsm.TableRevocations) {
		switch r.Of {
		case fsm.RevokedSerial:
			m.Serials = append(m.Serials, r.Name)
		case "member":
			m.Members = append(m.Members, &fairleadv1.RevokedMember{Name: r.Name, Before: r.Before})
		}
	}
	return m
}

// RevokedOf reads a list. Errors: it names no revision, has more than a record can, or what no certificate has.
func RevokedOf(m *fairleadv1.RevokedMembers) (Revoked, error) {
	r := Revoked{Revision: RevisionOf(m.GetRevision()), members: map[string]int64{}, serials: map[string]struct{}{}}
	if n := len(m.GetMembers()) + len(m.GetSerials()); n > maxRevoked {
		return Revoked{}, fmt.Errorf("list of revocations: %d of them, a group has at most %d", n, maxRevoked)
	}
	if r.Revision.IsZero() {
		return Revoked{}, errors.New("list of revocations: it names no revision")
	}
	for _, one := range m.GetMembers() {
		if n := len(one.GetName()); n == 0 || n > maxRevokedName || one.GetBefore() < 0 {
			return Revoked{}, fmt.Errorf("list of revocations: a member with a name of %d bytes, before %d", n, one.GetBefore())
		}
		r.members[one.GetName()] = one.GetBefore()
	}
	for _, serial := range m.GetSerials() {
		if n := len(serial); n == 0 || n > maxSerialDigits {
			return Revoked{}, fmt.Errorf("list of revocations: a serial number of %d digits", n)
		}
		r.serials[serial] = struct{}{}
	}
	return r, nil
}

// Why tells why a member's certificate is good no more; empty where it is.
func (r Revoked) Why(name, serial string, issued time.Time) string {
	if _, ok := r.serials[serial]; ok {
		return "the certificate with serial number " + serial + " was revoked"
	}
	before, ok := r.members[name]
	switch {
	case !ok, before != 0 && issued.Unix() >= before:
		return ""
	case before != 0:
		return "certificates of member/" + name + " from before " + time.Unix(before, 0).UTC().Format(time.RFC3339) + " were revoked"
	}
	return "all certificates of member/" + name + " were revoked"
}

// Len is how many revocations it has.
func (r Revoked) Len() int { return len(r.members) + len(r.serials) }

// Older tells whether it is of a revision before another one's: it is not taken then, or who is behind, or must not be heeded, would
// take revocations back.
func (r Revoked) Older(than Revoked) bool { return r.Revision.Before(than.Revision) }

// Same tells whether it says what another one does, whatever their revisions.
func (r Revoked) Same(as Revoked) bool {
	return bytes.Equal(r.encoded(fsm.Revision{}), as.encoded(fsm.Revision{}))
}

// encoded is its message, in order.
func (r Revoked) encoded(at fsm.Revision) []byte {
	m := &fairleadv1.RevokedMembers{Revision: RevisionMessage(at)}
	for name, before := range r.members {
		m.Members = append(m.Members, &fairleadv1.RevokedMember{Name: name, Before: before})
	}
	for serial := range r.serials {
		m.Serials = append(m.Serials, serial)
	}
	slices.SortStableFunc(m.Members, func(a, b *fairleadv1.RevokedMember) int {
		return bytes.Compare([]byte(a.GetName()), []byte(b.GetName()))
	})
	slices.Sort(m.Serials)
	data, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m) // it was read from a message
	return data
}

// Marshal encodes a list for keeping: its SHA-256, then the message.
func (r Revoked) Marshal() []byte {
	data := r.encoded(r.Revision)
	sum := sha256.Sum256(data)
	return append(sum[:], data...)
}

// UnmarshalRevoked reads what Marshal wrote. Errors: it is damaged, or longer than any.
func UnmarshalRevoked(data []byte) (Revoked, error) {
	if len(data) < sha256.Size || len(data) > maxRevokedBytes {
		return Revoked{}, fmt.Errorf("list of revocations: it has %d bytes", len(data))
	}
	sum, body := data[:sha256.Size], data[sha256.Size:]
	if want := sha256.Sum256(body); !bytes.Equal(sum, want[:]) {
		return Revoked{}, errors.New("list of revocations: it is damaged: its checksum differs")
	}
	var m fairleadv1.RevokedMembers
	if err := proto.Unmarshal(body, &m); err != nil {
		return Revoked{}, fmt.Errorf("list of revocations: %w", err)
	}
	return RevokedOf(&m)
}
