// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
)

// remembered are addresses that a restored record does not know of, and whose they were: by the record that was lost and by
// what users were told. They go back to those, and those get no others.
type remembered struct {
	at     time.Duration
	until  time.Duration // when the quarantine that follows was seen last
	owners map[netip.Addr][]fsm.ServiceID
}

// restored notes what a record lost that was restored from a backup.
func (r *s3) restored(s *step) {
	r.remembered = remembered{at: r.scene.now, until: r.scene.now, owners: map[netip.Addr][]fsm.ServiceID{}}
	for a, owners := range r.owners {
		for id := range owners {
			if !slices.ContainsFunc(s.after.Owners(a.String()), func(o *fsm.Allocation) bool { return o.Service == id }) {
				r.lose(a, id)
			}
		}
	}
	if s.before == nil || s.after.Group().Format < 2 {
		return
	}
	for _, o := range fsm.List[*fsm.Allocation](s.before, fsm.TableAllocations) {
		k := r.kube.services[string(o.Service)]
		if o.Releasing || k == nil || !r.kube.wanted(string(o.Service)) || !slices.Contains(k.status, o.Address) {
			continue
		}
		if len(s.after.Owners(o.Address.String())) == 0 && len(s.after.Addresses(o.Service)) == 0 {
			r.remembered.owners[o.Address] = append(r.remembered.owners[o.Address], o.Service)
		}
	}
}

// keeps tells whether an address that its owner lost at some time may still lead to it: it was lost with the record, and in the
// quarantine nothing is withdrawn.
func (r *s3) keeps(lost time.Duration) bool {
	return r.until > 0 && lost >= r.at && r.scene.now-r.until <= r.bounds.S8
}

// compareRemembered judges an allocation that came. A user who wrote to a Service or to pools since may have asked for it.
func (r *s3) compareRemembered(is *fsm.Allocation, number uint64) {
	m := r.remembered
	unchanged := func(id fsm.ServiceID) bool {
		k := r.kube.services[string(id)]
		return r.kube.wanted(string(id)) && k.changed < m.at && r.kube.reconfigured < m.at
	}
	if owners := m.owners[is.Address]; slices.Contains(owners, is.Service) {
		delete(m.owners, is.Address)
		return
	} else if len(owners) > 0 && unchanged(owners[0]) {
		r.broken(is.Address.String(), fmt.Sprintf("it went to %s after a restore; users know it as that of %s", is.Service, owners[0]), number)
	}
	for _, a := range sortedAddresses(m.owners) {
		if slices.Contains(m.owners[a], is.Service) && a.BitLen() == is.Address.BitLen() && unchanged(is.Service) {
			r.checked()
			r.broken(is.Address.String(), fmt.Sprintf("it went to %s after a restore, which users know by %s", is.Service, a), number)
		}
	}
}
