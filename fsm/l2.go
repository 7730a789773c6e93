// SPDX-License-Identifier: Apache-2.0

package fsm

import "slices"

// formatL2 is the first format with L2Advertisement, and with leases that end only at somebody's word.
const formatL2 uint32 = 2

// L2Advertisement has the addresses of pools answered for on the segments of nodes, by ARP and Neighbor Discovery. What
// the object selects by labels is resolved by the proposer. From format 2 on.
type L2Advertisement struct {
	seal
	Name  AdvertisementName `pb:"1" json:"name"`
	Pools []PoolName        `pb:"2" json:"pools"` // in order; none means none
	// Kept are those of them whose holders keep on answering when they cannot reach the group.
	Kept []PoolName `pb:"3" json:"kept"`
	// Nodes are who may answer, unless EveryNode may.
	Nodes      []NodeID  `pb:"4" json:"nodes"`
	EveryNode  bool      `pb:"5" json:"everyNode"`
	Interfaces []string  `pb:"6" json:"interfaces"` // where they answer; none means all
	Version    uint64    `pb:"7" json:"version"`    // of the object it came from
	Object     ObjectRef `pb:"8" json:"object"`
}

// OnSegment tells whether nodes answer for the addresses of a pool on their segments.
func (v *View) OnSegment(pool PoolName) bool {
	return slices.ContainsFunc(List[*L2Advertisement](v, TableL2Advertisements), func(ad *L2Advertisement) bool { return slices.Contains(ad.Pools, pool) })
}

// Table is TableL2Advertisements.
func (*L2Advertisement) Table() Table { return TableL2Advertisements }

// Key is the advertisement's name.
func (a *L2Advertisement) Key() string { return string(a.Name) }

// Admits tells whether a node may answer by this advertisement.
func (a *L2Advertisement) Admits(n NodeID) bool { return a.EveryNode || slices.Contains(a.Nodes, n) }

// PutL2Advertisement adds or replaces an advertisement.
type PutL2Advertisement struct {
	Advertisement L2Advertisement `pb:"1"`
}

// Kind is KindPutL2Advertisement.
func (*PutL2Advertisement) Kind() Kind { return KindPutL2Advertisement }

func (c *PutL2Advertisement) apply(tx *txn) Outcome {
	a := c.Advertisement
	if out, old := tx.formatBelow(formatL2, "l2 advertisement "+string(a.Name)); old {
		return out
	}
	if a.Name == "" {
		return refuse(RejectInvalid, "l2 advertisement", "", "a name")
	}
	if i := slices.IndexFunc(a.Kept, func(p PoolName) bool { return !slices.Contains(a.Pools, p) }); i >= 0 {
		return refuse(RejectInvalid, "l2 advertisement "+string(a.Name), "kept pool "+string(a.Kept[i]), "one of its pools")
	}
	tx.put(&a)
	return tx.ok()
}

// DeleteL2Advertisement removes an advertisement. Leases that it led to are the leader's to take back.
type DeleteL2Advertisement struct {
	Name AdvertisementName `pb:"1"`
}

// Kind is KindDeleteL2Advertisement.
func (*DeleteL2Advertisement) Kind() Kind { return KindDeleteL2Advertisement }

func (c *DeleteL2Advertisement) apply(tx *txn) Outcome {
	a, ok := find[*L2Advertisement](tx.rows, TableL2Advertisements, string(c.Name))
	if !ok {
		return refuse(RejectNotFound, "l2 advertisement "+string(c.Name), "", "")
	}
	tx.remove(a)
	return tx.ok()
}
