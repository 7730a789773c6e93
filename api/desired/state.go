// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"
	"unique"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/fsm"
)

// Config is how a node steers; see kube-iprule-cfg.
type Config struct {
	Switches       []netip.Addr `json:"switches"` // gateways for answers, one per family
	InTable        uint32       `json:"inTable"`
	OutTable       uint32       `json:"outTable"`
	ReplaceDefault bool         `json:"replaceDefault"`
	// RulePriorityIn and RulePriorityOut are those of the rules for packets to and from addresses, FwMark is the
	// mark of packets of connections to them; 0 is the agent's own choice.
	RulePriorityIn  uint32 `json:"rulePriorityIn"`
	RulePriorityOut uint32 `json:"rulePriorityOut"`
	FwMark          uint32 `json:"fwMark"`
}

// Member is a controller that agents heartbeat to and ask.
type Member struct {
	Name    string `json:"name"`
	Address string `json:"address"` // host:port of its API
}

// State is what one node shall have, as of a revision. It is immutable: whoever got one may keep it, and must
// not write to its slices. The zero State is that of an agent that was never told anything.
type State struct {
	Revision fsm.Revision
	Group    string // that said so
	Config   *Config
	Members  []Member
	Zone     string // that the node is in, empty if unknown
	Leaving  bool   // the cluster's autoscaler is about to delete the node
	Digest   Digest
	// Tunnels are how tunnels to other hosts are made; nil for none.
	Tunnels *TunnelSettings

	items []item // in order of their keys
}

type item struct {
	key     string
	value   string
	decoded any // *Told, *Policy or tunnelItem, of items of these kinds
}

func (i item) compare(o item) int { return cmp.Compare(i.key, o.key) }

// IsZero tells whether nothing was ever told.
func (s State) IsZero() bool { return s.Revision.IsZero() }

// Len is the number of items, those of unknown kinds included.
func (s State) Len() int { return len(s.items) }

// AddressCount is the number of service addresses.
func (s State) AddressCount() (n int) {
	for _, i := range s.items {
		if IsAddress(i.key) {
			n++
		}
	}
	return n
}

// Addresses lists the service addresses, IPv4 first, in order. They are decoded anew: who asks holds them, and most have
// the same few ports.
func (s State) Addresses() []Address {
	out, known := make([]Address, 0, s.AddressCount()), map[string][]Port{}
	for _, i := range s.items {
		if !IsAddress(i.key) {
			continue
		}
		ports, there := known[i.value]
		if !there {
			ports, _ = decodePorts([]byte(i.value)) // newItem found that it can be
			ports = slices.Clip(ports)
			known[i.value] = ports
		}
		a, _ := addressOf(i.key)
		out = append(out, Address{Prefix: netip.PrefixFrom(a, a.BitLen()), Ports: ports})
	}
	slices.SortFunc(out, func(a, b Address) int { return a.Prefix.Addr().Compare(b.Prefix.Addr()) })
	return out
}

// Each are the service addresses, in no order that means anything, without their ports.
func (s State) Each() iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for _, i := range s.items {
			if !IsAddress(i.key) {
				continue
			}
			if a, _ := addressOf(i.key); !yield(a) {
				return
			}
		}
	}
}

// Has tells whether an address is one of the service addresses.
func (s State) Has(a netip.Addr) bool {
	_, there := s.find(AddressKey(a))
	return there
}

// Told lists the Services, in order of their names. One that did not change from one state to the next is the same pointer in both.
func (s State) Told() []*Told {
	var out []*Told
	for _, i := range s.items {
		if t, ok := i.decoded.(*Told); ok {
			out = append(out, t)
		}
	}
	return out
}

// Services lists the Services, in order of their names, decoded anew: who has much to do with them asks for Told.
func (s State) Services() []*Service {
	var out []*Service
	for _, t := range s.Told() {
		out = append(out, t.Service())
	}
	return out
}

// newItem checks what this release understands of an item, and decodes what has to be at hand.
func newItem(key string, value []byte) (i item, err error) {
	i = item{key: key, value: string(value)}
	if key == "" {
		return i, nil
	}
	switch key[0] {
	case kindAddress:
		err = checkAddress(key, value)
		i.value = unique.Make(i.value).Value() // most have the same few ports
	case kindPolicy:
		i.decoded, err = decodePolicy(key, value)
	case kindTunnel:
		i.decoded, err = decodeTunnel(key, value)
	case kindNode:
		_, err = decodeNode(key, value)
	case kindService:
		var t *Told
		if t, err = newTold(key, i.value); err == nil {
			i.decoded, i.value = t, ""
		}
	}
	return i, err
}

// encoded is the value as it was sent.
func (i item) encoded() []byte {
	if t, ok := i.decoded.(*Told); ok {
		return t.encoded()
	}
	return []byte(i.value)
}

// RevisionOf reads a revision from its message; nil is the zero one.
func RevisionOf(r *fairleadv1.Revision) fsm.Revision {
	return fsm.Revision{Epoch: fsm.Epoch(r.GetEpoch()), Index: fsm.Index(r.GetIndex())}
}

// RevisionMessage writes a revision as its message; nil for the zero one.
func RevisionMessage(r fsm.Revision) *fairleadv1.Revision {
	if r.IsZero() {
		return nil
	}
	return &fairleadv1.Revision{Epoch: uint64(r.Epoch), Index: uint64(r.Index)}
}
