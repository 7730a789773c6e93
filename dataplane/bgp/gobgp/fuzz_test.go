// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	wire "github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"fairlead.io/fairlead/dataplane/bgp/hostile"
)

// FuzzMessages decodes and judges messages of a neighbour as a session of GoBGP does, in which a panic ends the speaker. Messages to a
// speaker that runs are in TestDrawnMessagesOfANeighbourEndNothing.
func FuzzMessages(f *testing.F) {
	kept := hostile.Messages()
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		f.Add(kept[name], false, false, false)
		f.Add(kept[name], true, true, true)
	}
	f.Fuzz(func(t *testing.T, message []byte, addPath, twoByteASNs, external bool) {
		var head wire.BGPHeader
		if len(message) < wire.BGP_HEADER_LENGTH || len(message) > wire.BGP_MAX_MESSAGE_LENGTH || head.DecodeFromBytes(message[:wire.BGP_HEADER_LENGTH]) != nil {
			return
		}
		head.Len = uint16(len(message)) // a session reads as much as it says
		families := map[wire.Family]wire.BGPAddPathMode{wire.RF_IPv4_UC: wire.BGP_ADD_PATH_NONE, wire.RF_IPv6_UC: wire.BGP_ADD_PATH_NONE}
		if addPath {
			families[wire.RF_IPv4_UC], families[wire.RF_IPv6_UC] = wire.BGP_ADD_PATH_BOTH, wire.BGP_ADD_PATH_BOTH
		}
		m, err := wire.ParseBGPBody(&head, message[wire.BGP_HEADER_LENGTH:], &wire.MarshallingOption{AddPath: families, Use2ByteAS: twoByteASNs})
		wrong, known := err.(*wire.MessageError) // the session takes each error for one, unasked
		if err != nil && !known || m == nil && err == nil {
			t.Fatalf("neither a message nor an error of a message: %T %v", err, err)
		}
		if m == nil {
			return
		}
		switch body := m.Body.(type) {
		case *wire.BGPUpdate:
			// What has an error that it says nothing of is judged as what has none.
			if err == nil || wrong.ErrorHandling == wire.ERROR_HANDLING_NONE {
				_, _ = wire.ValidateUpdateMsg(body, families, external, false, false) // that it comes back is all that is asked
			}
			_, _ = body.IsEndOfRib()
		case *wire.BGPOpen:
			if err == nil {
				_, _ = wire.ValidateOpenMsg(body, hostile.ASN, hostile.ASN+1, netip.AddrFrom4([4]byte{192, 0, 2, 1}))
			}
		}
	})
}
