// SPDX-License-Identifier: Apache-2.0

package world

import (
	"testing"
	"unsafe"
)

// There are as many of these as a cluster has, so that a field which few of them need is elsewhere: see Place and Extra.
func TestObjectsOfWhichThereAreManyAreSmall(t *testing.T) {
	for what, bytes := range map[string][2]uintptr{
		"Service":       {unsafe.Sizeof(Service{}), 208},
		"EndpointSlice": {unsafe.Sizeof(EndpointSlice{}), 144},
		"Endpoint":      {unsafe.Sizeof(Endpoint{}), 56},
	} {
		if bytes[0] > bytes[1] {
			t.Errorf("%s takes %d bytes, want %d at most", what, bytes[0], bytes[1])
		}
	}
}
