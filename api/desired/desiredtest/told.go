// SPDX-License-Identifier: Apache-2.0

// Package desiredtest makes what an agent was told, for tests of what carries it out. It promises that a State comes about as an agent's
// does: from one whole message, whose digest was compared.
package desiredtest

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/fsm"
)

// T is what testing.TB, rapid's T and benchmarks have in common.
type T interface {
	Helper()
	Fatal(args ...any)
}

// Told is a message that is being written. The zero value is an empty one.
type Told struct {
	pieces desired.Pieces
	digest desired.Digest
	err    error // the first one
}

// Put adds an item; it takes what encoders of values give. State tells their errors.
func (m *Told) Put(key string, value []byte, err error) {
	if err == nil {
		err = m.pieces.Put(key, value)
	}
	if err != nil && m.err == nil {
		m.err = fmt.Errorf("item %q: %w", key, err)
	}
	m.digest = m.digest.Plus(key, value)
}

// Items adds items by their keys.
func (m *Told) Items(items map[string][]byte) {
	for _, key := range slices.Sorted(maps.Keys(items)) {
		m.Put(key, items[key], nil)
	}
}

// Address adds a service address and its ports.
func (m *Told) Address(a netip.Addr, ports ...desired.Port) {
	value, err := desired.AddressValue(ports)
	m.Put(desired.AddressKey(a), value, err)
}

// Services adds some.
func (m *Told) Services(services ...desired.Service) {
	for _, s := range services {
		value, err := desired.ServiceValue(s)
		m.Put(desired.ServiceKey(s.Name), value, err)
	}
}

// State is what an agent has that was told this alone, as of revision 1:1. own is what is said to its node; nil: nothing.
func (m *Told) State(t T, own *fairleadv1.NodeState) desired.State {
	t.Helper()
	return m.StateAt(t, 1, own)
}

// StateAt is State as of another index.
func (m *Told) StateAt(t T, index fsm.Index, own *fairleadv1.NodeState) desired.State {
	t.Helper()
	if m.err != nil {
		t.Fatal(m.err)
	}
	changes, err := m.pieces.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if own == nil {
		own = desired.NodeMessage("g", nil, nil)
	}
	var steps desired.Steps
	if _, err := steps.Add(&fairleadv1.SyncResponse{
		Revision: desired.RevisionMessage(fsm.Revision{Epoch: 1, Index: index}), Full: true, Changes: changes, Digest: m.digest[:], Node: own,
	}); err != nil {
		t.Fatal(err)
	}
	return steps.State
}
