// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
	"net/netip"
	"slices"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/fsm"
)

// Config is how a node steers; see kube-iprule-cfg.
type Config struct {
	Switches       []netip.Addr `json:"switches"` // gateways for answers, one per family
	InTable        uint32       `json:"inTable"`
	OutTable       uint32       `json:"outTable"`
	ReplaceDefault bool         `json:"replaceDefault"`
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
	Digest   Digest

	items []item // in order of their keys
}

type item struct {
	key     string
	value   []byte
	address *Address // of items of that kind
}

func (i item) compare(o item) int { return cmp.Compare(i.key, o.key) }

// IsZero tells whether nothing was ever told.
func (s State) IsZero() bool { return s.Revision.IsZero() }

// Len is the number of items, those of unknown kinds included.
func (s State) Len() int { return len(s.items) }

// Addresses lists the service addresses, IPv4 first, in order.
func (s State) Addresses() []Address {
	out := make([]Address, 0, len(s.items))
	for _, i := range s.items {
		if i.address != nil {
			out = append(out, *i.address)
		}
	}
	slices.SortFunc(out, func(a, b Address) int { return a.Prefix.Addr().Compare(b.Prefix.Addr()) })
	return out
}

// newItem decodes what this release understands of an item.
func newItem(key string, value []byte) (item, error) {
	i := item{key: key, value: value}
	if key != "" && key[0] == kindAddress {
		address, err := decodeAddress(key, value)
		if err != nil {
			return item{}, err
		}
		i.address = address
	}
	return i, nil
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
