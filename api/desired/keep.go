// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"net/netip"
	"slices"
)

// Keeping is s and, beside it, what old has about those of some addresses that s does not have: their items, and the
// translations to them, but not the node ports, ClusterIPs and addresses by others of a Service that is gone. A Service that s still has translates to them as
// it does to its other addresses. What is no item is that of s.
//
// Errors: a Service cannot be encoded.
func (s State) Keeping(old State, addresses map[netip.Addr]bool) (State, error) {
	if len(addresses) == 0 {
		return s, nil
	}
	kept := map[netip.Addr]bool{}
	var add []item
	for _, i := range old.items {
		if !IsAddress(i.key) {
			continue
		}
		a, _ := addressOf(i.key)
		if !addresses[a] {
			continue
		}
		if _, wanted := s.find(i.key); !wanted {
			kept[a] = true
			add = append(add, i)
		}
	}
	if len(kept) == 0 {
		return s, nil
	}
	for _, t := range s.Told() {
		for _, a := range t.addresses() {
			delete(kept, a) // translated already
		}
	}
	for _, t := range old.Told() {
		left := slices.DeleteFunc(t.addresses(), func(a netip.Addr) bool { return !kept[a] })
		if len(left) == 0 {
			continue
		}
		service := *t.Service()
		service.leave(left)
		if have, _ := s.find(t.key); have.decoded != nil {
			service = *have.decoded.(*Told).Service() // by its key
			service.Addresses = slices.Concat(service.Addresses, left)
		}
		value, err := ServiceValue(service)
		if err != nil {
			return s, err
		}
		next, err := newItem(t.key, value)
		if err != nil {
			return s, err
		}
		add = append(add, next)
	}
	return s.with(add), nil
}

// leave makes a Service one that is about to go, and is kept for some addresses alone: the API server may give its ClusterIPs and node
// ports to another one at once, and other controllers what they gave it.
func (s *Service) leave(addresses []netip.Addr) {
	s.Addresses, s.ClusterIPs, s.ByOthers, s.InternalLocal, s.NodePortsIPv4, s.NodePortsIPv6 = addresses, nil, nil, false, false, false
	s.HealthCheckNodePort = 0
	s.Frontends = slices.Clone(s.Frontends)
	for i := range s.Frontends {
		s.Frontends[i].NodePort = 0
	}
}

// Only is s with nothing but what it has about some addresses, as Keeping would keep it.
func (s State) Only(addresses map[netip.Addr]bool) (State, error) {
	bare := s
	bare.items, bare.Digest = nil, Digest{}
	return bare.Keeping(s, addresses)
}

// Bare is a state of which nothing is known but its addresses.
//
// Errors: an address cannot be encoded.
func Bare(addresses []Address) (State, error) {
	var add []item
	for _, a := range addresses {
		value, err := AddressValue(a.Ports)
		if err != nil {
			return State{}, err
		}
		i, err := newItem(AddressKey(a.Prefix.Addr()), value)
		if err != nil {
			return State{}, err
		}
		add = append(add, i)
	}
	return State{}.with(add), nil
}

// find looks an item up by its key.
func (s State) find(key string) (item, bool) {
	at, found := slices.BinarySearchFunc(s.items, item{key: key}, item.compare)
	if !found {
		return item{}, false
	}
	return s.items[at], true
}

// with is s with items put in, over those of the same key.
func (s State) with(add []item) State {
	edits := make([]edit, 0, len(add))
	for _, i := range add {
		edits = append(edits, edit{item: i})
	}
	s.splice(edits)
	return s
}
