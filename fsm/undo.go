// SPDX-License-Identifier: Apache-2.0

package fsm

import "fmt"

// unrecordable is the panic of a record that cannot be encoded, though the command that made it could be decoded: the zone of an address
// that is not UTF-8 has become part of a name, or a list has grown too long.
type unrecordable struct {
	record Record
	err    error
}

// Error says which, and why.
func (u *unrecordable) Error() string {
	return fmt.Sprintf("fsm: %s %q: %v", u.record.Table(), u.record.Key(), u.err)
}

// change is one record that the present command put or removed: nil before it was there, or now that it is gone.
type change struct{ before, after Record }

// attempt applies a command. One that makes a record that cannot be encoded is refused, and leaves nothing of what it did before it came
// to that: no release ever got past such a command, so that none has another record of it. All other panics go on: they may be of this
// release alone, and to refuse what another one accepts would fork the record.
func (tx *txn) attempt(c Command) (out Outcome) {
	tx.changes, tx.fences = tx.changes[:0], tx.fences[:0]
	drawn := tx.drawn
	defer func() {
		switch v := recover().(type) {
		case nil:
		case *unrecordable:
			tx.undo()
			tx.drawn = drawn
			out = Unfit(Proposal{Command: c}, v)
		default:
			panic(v)
		}
	}()
	return c.apply(tx)
}

// undo takes back what the present command did to the record.
func (tx *txn) undo() {
	changes := tx.changes
	for i := len(changes) - 1; i >= 0; i-- {
		if c := changes[i]; c.before != nil {
			tx.write(c.before)
		} else {
			tx.erase(c.after)
		}
	}
	for _, subject := range tx.fences {
		delete(tx.fenced, subject)
	}
	tx.meta = nil // read it anew
}
