// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"fmt"
	"net/netip"
	"slices"

	"google.golang.org/protobuf/proto"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
)

// kindNode begins the key of a node.
const kindNode = 'n'

// NodeKey is the key of a node's item.
func NodeKey(name string) string { return string(kindNode) + name }

// NodeValue encodes what a node's item says: the addresses at which the node ports of Services are dialled.
func NodeValue(addresses []netip.Addr) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(&fairleadv1.Node{Addresses: bytesOf(addresses)})
}

// decodeNode reads what a node's item says.
func decodeNode(key string, value []byte) (addresses []netip.Addr, err error) {
	var m fairleadv1.Node
	if err := proto.Unmarshal(value, &m); err != nil {
		return nil, fmt.Errorf("decode item of node %q: %w", key[1:], err)
	}
	if addresses, err = addressesOf(m.GetAddresses()); err != nil {
		return nil, fmt.Errorf("decode item of node %q: %w", key[1:], err)
	}
	return addresses, nil
}

// NodeAddresses lists the addresses of all nodes of the cluster, IPv4 first, in order and each once. Only nodes that are told
// of all Services are told of these.
func (s State) NodeAddresses() (out []netip.Addr) {
	for _, i := range s.items {
		if i.key != "" && i.key[0] == kindNode {
			addresses, _ := decodeNode(i.key, []byte(i.value)) // newItem found that it can be
			out = append(out, addresses...)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}
