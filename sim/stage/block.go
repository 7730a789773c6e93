// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/k8s/api"
)

// Block is a pool of a few addresses, all of which users ask for, so that switches can be told of them together.
var Block = netip.MustParsePrefix("192.0.2.0/29")

// BlockSize is how many addresses it has.
const BlockSize = 8

// blockPool is the name of the pool.
const blockPool = "block"

// BlockAddress is the i-th address of the Block, counted from 0.
func BlockAddress(i int) netip.Addr {
	a := Block.Addr().As4()
	a[3] += byte(i % BlockSize)
	return netip.AddrFrom4(a)
}

// furnishBlock brings in the Block, where addresses are to be announced together.
func (s *Stage) furnishBlock() {
	if s.options.Aggregate == 0 {
		return
	}
	s.create("user", Custom(&api.IPAddressPool{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.MetalLBV1Beta1, Kind: "IPAddressPool"},
		ObjectMeta: metav1.ObjectMeta{Namespace: System, Name: blockPool},
		Spec:       api.IPAddressPoolSpec{Addresses: []string{Block.String()}, AutoAssign: new(bool)},
	}))
}

// advertisement is what the BGPAdvertisement of all addresses says.
func (s *Stage) advertisement() (spec api.BGPAdvertisementSpec) {
	if bits := int32(s.options.Aggregate); bits != 0 {
		spec.AggregationLength = &bits
	}
	return spec
}
