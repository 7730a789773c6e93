// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"testing"
	"unsafe"
)

// There are very many of these in memory, where a byte more can be sixteen.
func TestRowsFitTheirSizeClass(t *testing.T) {
	for what, size := range map[string][2]uintptr{
		"Service": {unsafe.Sizeof(Service{}), 208}, "Allocation": {unsafe.Sizeof(Allocation{}), 96}, "Route": {unsafe.Sizeof(Route{}), 128},
		"Endpoint": {unsafe.Sizeof(Endpoint{}), 56}, "Transition": {unsafe.Sizeof(Transition{}), 48},
		"NextHop": {unsafe.Sizeof(NextHop{}), 32},
	} {
		if size[0] > size[1] {
			t.Errorf("%s has %d bytes, more than %d", what, size[0], size[1])
		}
	}
}
