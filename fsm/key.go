// SPDX-License-Identifier: Apache-2.0

package fsm

import "strings"

// keyRoom is enough for most keys that are made to be compared.
const keyRoom = 96

// compareKey tells where a record is beside a key, in byte order: before (negative), there (0), or after. Keys of which there are very many
// and that no record has as such are not made for it: a look into a table compares a dozen.
func compareKey(r Record, key string) int {
	var room [keyRoom]byte
	switch r := r.(type) {
	case *Allocation:
		return compareText(appendAllocationKey(room[:0], r.Address, r.Service), key)
	case *Grave:
		return compareText(r.appendKey(room[:0]), key)
	case *Lease:
		if r.VIP.IsValid() {
			return compareText(r.VIP.AppendTo(room[:0]), key)
		}
	case *Route:
		if r.Prefix.IsValid() { // else its text is another one
			return compareText(r.Prefix.AppendTo(room[:0]), key)
		}
	}
	return strings.Compare(r.Key(), key)
}

func compareText(text []byte, key string) int {
	switch {
	case string(text) < key:
		return -1
	case string(text) > key:
		return 1
	}
	return 0
}
