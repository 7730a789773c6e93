// SPDX-License-Identifier: Apache-2.0

package fsm

// Origin is a BackendRecord of another controller that a binding was taken over from. Two objects of one name are never
// there at once, so the newest one says of every earlier one that it is gone.
type Origin struct {
	UID string `pb:"1" json:"uid"`
	// Made is its creationTimestamp: seconds since 1970, by the API server's clock. It is compared with those of other
	// objects alone.
	Made int64 `pb:"2" json:"made"`
}

// Trace is what the record knows of a BackendRecord that does not say that it is ours.
type Trace uint8

// The traces.
const (
	// TraceNone: no binding was taken over from it. What it says is another controller's word, and newer than ours.
	TraceNone Trace = iota
	// TraceUnsure: one may have been. What it says may be over.
	TraceUnsure
	// TraceTaken: one was. What it says is over unless that binding is there, whatever has its name by now.
	TraceTaken
)

// TraceOf tells whether a binding of that id was ever taken over from an object of its name.
func (v *View) TraceOf(id BindingID, o Origin) Trace {
	if o.UID == "" {
		return TraceUnsure
	}
	if b, ok := Get[*Binding](v, TableBindings, string(id)); ok && b.Origin.UID == o.UID {
		return TraceTaken
	}
	g, ok := Get[*Grave](v, TableGraves, graveOfBinding(id))
	switch {
	case ok && g.Origin.UID == o.UID:
		return TraceTaken
	case ok && g.UID == "", o.Made < v.Group().UntracedBefore: // format 1 kept no traces
		return TraceUnsure
	}
	return TraceNone
}

func graveOfBinding(id BindingID) string { return string(TableBindings) + "/" + string(id) }

// originOf is what a new binding inherits from the one of its id before it.
func (tx *txn) originOf(id BindingID) Origin {
	if g, ok := find[*Grave](tx.rows, TableGraves, graveOfBinding(id)); ok {
		return g.Origin
	}
	return Origin{}
}

// untrace keeps, for an origin whose grave makes way, how old an object may be that nobody can tell any more.
func (tx *txn) untrace(o Origin) {
	if o.UID == "" || o.Made < tx.group().UntracedBefore {
		return
	}
	next := *tx.group()
	next.UntracedBefore = o.Made + 1
	tx.put(&next)
}
