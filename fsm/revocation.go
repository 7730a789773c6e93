// SPDX-License-Identifier: Apache-2.0

package fsm

import "slices"

// FormatRevocations is the first format with revocations: members before it cannot read them, and end where they come to one.
const FormatRevocations uint32 = 2

const (
	// maxRevocations bounds the revocations of a group.
	maxRevocations = 10_000
	// maxSerial bounds a serial number, in hexadecimal digits: 20 bytes (RFC 5280, section 4.1.2.2), of which the first may be zero.
	maxSerial = 42
	// maxRevokedName is the longest name that a certificate can have, in bytes.
	maxRevokedName = 253
)

// Revocation is an operator's word that certificates are good no more, or that a member is none any more: of one certificate, of all
// that somebody has, or of the right to join. It lasts until an operator takes it back.
type Revocation struct {
	seal
	Of   RevocationOf `pb:"1" json:"of"`
	Name string       `pb:"2" json:"name"` // the serial number in lower-case hexadecimal, or the name of who has it
	// Before is since when certificates of that role and name are good again, as they say themselves (seconds since 1970): earlier
	// ones never are. Zero: none is.
	Before  int64    `pb:"3" json:"before,omitempty"`
	Since   Revision `pb:"4" json:"since"`
	History Trail    `pb:"5" json:"history"`
}

// RevocationOf says what is revoked: the role of whoever has certificates, or one of these.
type RevocationOf string

// What can be revoked beside the certificates of somebody in a role.
const (
	RevokedSerial     RevocationOf = "serial"     // one certificate
	RevokedMembership RevocationOf = "membership" // of a member that an operator removed, by its name
)

// Revocable lists what can be revoked.
func Revocable() []RevocationOf {
	return []RevocationOf{"member", "agent", "host", "operator", "viewer", RevokedSerial, RevokedMembership}
}

// Table is TableRevocations.
func (*Revocation) Table() Table { return TableRevocations }

// Key is what is revoked, and of whom.
func (r *Revocation) Key() string { return revocationKey(r.Of, r.Name) }

func revocationKey(of RevocationOf, name string) string { return string(of) + "/" + name }

// Revoked finds the revocation of something, if there is one.
func (v *View) Revoked(of RevocationOf, name string) (*Revocation, bool) {
	if v.Count(TableRevocations) == 0 {
		return nil, false
	}
	return Get[*Revocation](v, TableRevocations, revocationKey(of, name))
}

// Revoke makes certificates good for nothing, or a member none; where that is so already, it says since when they are good again.
type Revoke struct {
	Of     RevocationOf `pb:"1"`
	Name   string       `pb:"2"`
	Before int64        `pb:"3"` // see Revocation.Before; for roles alone
}

// Kind is KindRevoke.
func (*Revoke) Kind() Kind { return KindRevoke }

func (c *Revoke) apply(tx *txn) Outcome {
	subject := string(c.Of) + " " + c.Name
	if out, old := tx.formatBelow(FormatRevocations, subject); old {
		return out
	}
	if !c.sound() {
		return refuse(RejectInvalid, subject, "", "a role and a name, or a serial number")
	}
	r, known := find[*Revocation](tx.rows, TableRevocations, revocationKey(c.Of, c.Name))
	if known && r.Before == c.Before {
		return tx.ok()
	}
	if n := len(list[*Revocation](tx.rows, TableRevocations)); !known && n >= maxRevocations {
		return refuse(RejectInUse, subject, utoa(uint64(n))+" revocations", "fewer")
	}
	next, what := Revocation{Of: c.Of, Name: c.Name, Since: tx.revision()}, "revoked"
	if known {
		next = *r
	}
	if next.Before = c.Before; c.Before != 0 {
		what = "only those from before stay revoked"
	}
	next.History = tx.step(next.History, what)
	tx.put(&next)
	return tx.ok()
}

// sound tells whether it names what there can be.
func (c *Revoke) sound() bool {
	switch {
	case !slices.Contains(Revocable(), c.Of) || c.Name == "" || c.Before < 0:
		return false
	case c.Of == RevokedSerial:
		return c.Before == 0 && len(c.Name) <= maxSerial && hexadecimal(c.Name)
	case c.Of == RevokedMembership:
		return c.Before == 0 && len(c.Name) <= maxRevokedName
	}
	return len(c.Name) <= maxRevokedName
}

// hexadecimal tells whether text is digits of a number in lower-case hexadecimal.
func hexadecimal(text string) bool {
	for _, r := range text {
		if (r < '0' || r > '9') && (r < 'a' || r > 'f') {
			return false
		}
	}
	return true
}

// EndRevocation takes a revocation back, all of it.
type EndRevocation struct {
	Of   RevocationOf `pb:"1"`
	Name string       `pb:"2"`
}

// Kind is KindEndRevocation.
func (*EndRevocation) Kind() Kind { return KindEndRevocation }

func (c *EndRevocation) apply(tx *txn) Outcome {
	r, ok := find[*Revocation](tx.rows, TableRevocations, revocationKey(c.Of, c.Name))
	if !ok {
		return refuse(RejectNotFound, string(c.Of)+" "+c.Name, "", "")
	}
	tx.bury(r, r.History, "taken back")
	return tx.ok()
}
