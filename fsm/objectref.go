// SPDX-License-Identifier: Apache-2.0

package fsm

// formatObjectRef is the first format that knows ObjectRef.
const formatObjectRef uint32 = 2

// ObjectRef says which object of that name a part of the configuration came from, so that it can be asked for where a list
// lacks it. Both are empty where the source has none. From format 2 on.
type ObjectRef struct {
	Namespace string `pb:"1" json:"namespace,omitempty"`
	UID       string `pb:"2" json:"uid,omitempty"`
}

// refersBelow refuses an ObjectRef in a record whose format has none.
func (tx *txn) refersBelow(r ObjectRef, subject string) (Outcome, bool) {
	if r == (ObjectRef{}) {
		return Outcome{}, false
	}
	return tx.formatBelow(formatObjectRef, subject)
}
