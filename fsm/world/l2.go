// SPDX-License-Identifier: Apache-2.0

package world

import "slices"

// L2Advertisement has the addresses of some pools answered for on the local link, by ARP and NDP.
type L2Advertisement struct {
	Meta
	Homed
	// Pools and PoolSelectors choose the pools together; with neither, all are meant.
	Pools         []string
	PoolSelectors []Selector
	// NodeSelectors choose the nodes that may answer, each of them some; none means all nodes.
	NodeSelectors []Selector
	// Interfaces are those to answer on; none means all.
	Interfaces []string
}

// Selects tells whether the addresses of a pool with this name and these labels are meant.
func (a *L2Advertisement) Selects(pool string, labels []KV) bool {
	return selectsPool(a.Pools, a.PoolSelectors, pool, labels)
}

// Selects tells whether an advertisement is about a pool.
func (a *Advertisement) Selects(pool string, labels []KV) bool {
	return selectsPool(a.Pools, a.PoolSelectors, pool, labels)
}

// selectsPool is what names and selectors of an advertisement say of a pool.
func selectsPool(names []string, selectors []Selector, pool string, labels []KV) bool {
	if len(names) == 0 && len(selectors) == 0 {
		return true
	}
	return slices.Contains(names, pool) || AnyMatches(selectors, labels)
}
