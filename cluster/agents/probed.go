// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"fmt"
	"net/netip"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/probes"
	"fairlead.io/fairlead/fsm"
)

// Bounds of what nodes say of what they probe. What they say counts for subjects of the record alone (see package probes), and is kept whether or
// not the record has them: a member may lag behind what a node was told, and nodes say it once. A node that invents subjects has the place of one
// node by that, less than 4 MiB, and it would say them again if they were forgotten.
const (
	maxProbed      = 4096      // places of one node, and subjects, whether or not they have any
	maxHeldBytes   = 256 << 20 // of all nodes
	maxServiceName = 317       // bytes: a namespace, a slash and a name, as Kubernetes has them at most
	placeBytes     = 64        // what one place takes in memory, or a subject beside its name
)

// probedBytes is what a report takes in memory.
func probedBytes(r probes.Report) (n int) {
	for of, places := range r {
		n += placeBytes + len(of.Service) + placeBytes*len(places)
	}
	return n
}

// Probed gives what each node that was heard of within so long thinks of the addresses that it probes.
func (s *Service) Probed(within time.Duration) probes.Heard {
	out, now := probes.Heard{}, s.o.Now()
	s.beats.mu.Lock()
	defer s.beats.mu.Unlock()
	for id, b := range s.beats.last {
		if _, half := s.beats.coming[id]; now.Sub(b.At) <= within && (!half || s.beats.probes[id].Report != nil) {
			out[id] = s.beats.probes[id]
		}
	}
	return out
}

// forgetProbes is for a new stream of heartbeats that begins without a word of probes.
func (l *beats) forgetProbes(node fsm.NodeID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setProbes(node, probes.Said{})
	l.setComing(node, nil)
}

// setProbes and setComing keep count of what all nodes said, under l.mu. Nil is forgotten.
func (l *beats) setProbes(node fsm.NodeID, said probes.Said) {
	l.held += probedBytes(said.Report) - probedBytes(l.probes[node].Report)
	if l.probes[node] = said; said.Report == nil {
		delete(l.probes, node)
	}
}

func (l *beats) setComing(node fsm.NodeID, half probes.Report) {
	l.held += probedBytes(half) - l.half[node]
	l.coming[node], l.half[node] = half, probedBytes(half)
	if half == nil {
		delete(l.coming, node)
		delete(l.half, node)
	}
}

// addProbes takes in a piece of a report, or, where m is nil, that what the node said is so as of a revision, too. What the node said before counts
// until the last piece is there.
func (l *beats) addProbes(node fsm.NodeID, m *fairleadv1.ProbeReport, of fsm.Revision) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m == nil {
		if said, told := l.probes[node]; told && !of.IsZero() {
			said.Of = of
			l.probes[node] = said
		}
		return nil
	}
	if _, known := l.last[node]; !known && len(l.last) >= maxBeating {
		return nil // it is refused anyway
	}
	report := l.coming[node]
	if report == nil || m.GetBegins() {
		report = probes.Report{}
	}
	err := gather(report, m)
	if err == nil && l.held-l.half[node]+probedBytes(report) > maxHeldBytes {
		err = fmt.Errorf("what nodes say of probes takes %d MiB already", maxHeldBytes>>20)
	}
	if err != nil {
		l.setComing(node, nil)
		return err
	}
	if m.GetMore() {
		l.setComing(node, report)
		return nil
	}
	l.setComing(node, nil)
	l.setProbes(node, probes.Said{Report: report, Of: of})
	return nil
}

// gather adds a piece to a report that nobody else has yet.
func gather(to probes.Report, m *fairleadv1.ProbeReport) error {
	n, subjects := 0, len(to)
	for _, places := range to {
		n += len(places)
	}
	add := func(of probes.Subject, reported []*fairleadv1.PlaceReport) error {
		places, known := to[of]
		if n += len(reported); !known {
			subjects++
		}
		switch {
		case n > maxProbed, subjects > maxProbed:
			return fmt.Errorf("it reports on more than %d probed places, or policies and Services", maxProbed)
		case len(of.Service) > maxServiceName:
			return fmt.Errorf("it reports on a Service with a name of %d bytes, at most %d make sense", len(of.Service), maxServiceName)
		}
		if !known {
			places = map[fsm.Probed]probes.Opinion{}
			to[of] = places
		}
		for _, p := range reported {
			at, err := placeOf(p)
			if err != nil {
				return err
			}
			places[at] = opinionOf(p)
		}
		return nil
	}
	for _, r := range m.GetRedirects() {
		if err := add(probes.Subject{Redirect: r.GetNumber()}, r.GetPlaces()); err != nil {
			return err
		}
	}
	for _, s := range m.GetServices() {
		if err := add(probes.Subject{Service: fsm.ServiceID(s.GetName())}, s.GetPlaces()); err != nil {
			return err
		}
	}
	return nil
}

func placeOf(p *fairleadv1.PlaceReport) (fsm.Probed, error) {
	address, ok := netip.AddrFromSlice(p.GetAddress())
	port := p.GetPort()
	if !ok || port.GetProtocol() > 0xff || port.GetNumber() > 0xffff {
		return fsm.Probed{}, fmt.Errorf("a probed place is none: address of %d bytes, port %d of protocol %d", len(p.GetAddress()), port.GetNumber(), port.GetProtocol())
	}
	return fsm.Probed{Address: address, Port: fsm.Port{Protocol: fsm.Protocol(port.GetProtocol()), Number: uint16(port.GetNumber())}}, nil
}

func opinionOf(p *fairleadv1.PlaceReport) probes.Opinion {
	switch {
	case p.GetHealthy():
		return probes.Good
	case p.GetUnhealthy():
		return probes.Bad
	}
	return probes.Unknown
}
