// SPDX-License-Identifier: Apache-2.0

package member

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
)

// holding keeps withdrawals from ending while a peer may hold something that the speaker does not know: one that an earlier run of this
// member announced to, and that is left out, since its password is new or was lost.
type holding struct {
	opened time.Time
	store  bgp.Store
	tell   func(bgp.Revision) // up to where withdrawals came

	mu      sync.Mutex
	before  *bgp.Routes // of the earlier run; nil until somebody asks
	met     map[netip.Addr]bool
	until   time.Time
	through bgp.Revision // as the speaker knows
	told    bgp.Revision
}

// newHolding looks up in the store what an earlier run announced, when it comes to that.
func newHolding(store bgp.Store, tell func(bgp.Revision)) *holding {
	return &holding{opened: time.Now(), store: store, tell: tell, met: map[netip.Addr]bool{}}
}

// earlier is the peer of the earlier run with an address. One that cannot be read is not waited for. What this run saved meanwhile tells as
// much: it has the peers that were met.
func (h *holding) earlier(a netip.Addr) (bgp.Peer, bool) {
	if h.before == nil {
		if before, err := h.store.Load(); err == nil {
			h.before = before
		}
	}
	if h.before == nil {
		return bgp.Peer{}, false
	}
	i := slices.IndexFunc(h.before.Peers, func(p bgp.Peer) bool { return p.Address == a })
	if i < 0 {
		return bgp.Peer{}, false
	}
	return h.before.Peers[i], true
}

// peers takes in who is a peer, and the addresses of those that are left out.
func (h *holding) peers(peers []bgp.Peer, missing []netip.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range peers {
		h.met[p.Address] = true
	}
	for _, a := range missing {
		if h.met[a] {
			continue
		}
		before, known := h.earlier(a)
		if until := h.opened.Add(before.Normal(0).Keeps()); known && until.After(h.until) {
			h.until = until
			time.AfterFunc(time.Until(until), h.release)
		}
	}
}

// withdrawn takes in up to where no peer that the speaker knows holds anything that was withdrawn.
func (h *holding) withdrawn(at bgp.Revision) {
	h.mu.Lock()
	h.through = at
	h.mu.Unlock()
	h.release()
}

// release says how far withdrawals came, unless a peer that is left out may hold something.
func (h *holding) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.through != h.told && !time.Now().Before(h.until) {
		h.told = h.through
		h.tell(h.through)
	}
}
