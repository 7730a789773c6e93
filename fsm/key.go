// SPDX-License-Identifier: Apache-2.0

package fsm

import "strings"

// keyRoom is enough for most keys that are made to be compared.
const keyRoom = 96

// compareKey tells where a record is beside a key, in byte order: before (negative), there (0), or after. The keys of which a table in
// order is searched by most are not made for it.
func compareKey(r Record, key string) int {
	var room [keyRoom]byte
	switch r := r.(type) {
	case *Allocation:
		return compareText(appendAllocationKey(room[:0], r.Address, r.Service), key)
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
