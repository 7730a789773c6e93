// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/fsm"
)

// Bounds of reports. A heartbeat has to stay below what members of any release read.
const (
	maxReported = 4096 // places
	pieceBytes  = 8 << 10
	placeBytes  = 40 // a place of IPv6 takes at most
)

// Report gives what this host found out of all places, not what it took from the record, the number of that, and as of which revision it is of
// what is to be probed; no pieces if that number is told already. Places beyond the bound are left out.
func (c *Checker) Report(told uint64) (pieces []*fairleadv1.ProbeReport, number uint64, of fsm.Revision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if told == c.number {
		return nil, told, c.of
	}
	if !c.taken { // what is probed is not known yet; that it is nothing would be another word
		return []*fairleadv1.ProbeReport{{Begins: true, More: true}}, c.number, c.of
	}
	w := &writer{}
	w.turn()
	w.piece.Begins = true
	for _, r := range c.order {
		c.report(w, c.policies[r].checks, placeBytes, func() *[]*fairleadv1.PlaceReport {
			of := &fairleadv1.RedirectReport{Number: r.Number}
			w.piece.Redirects = append(w.piece.Redirects, of)
			return &of.Places
		})
	}
	for _, s := range c.services {
		c.report(w, s.checks, placeBytes+len(s.of.Name()), func() *[]*fairleadv1.PlaceReport {
			of := &fairleadv1.ServiceReport{Name: s.of.Name()}
			w.piece.Services = append(w.piece.Services, of)
			return &of.Places
		})
	}
	return w.pieces, c.number, c.of
}

// writer puts a report in pieces.
type writer struct {
	pieces []*fairleadv1.ProbeReport
	piece  *fairleadv1.ProbeReport // the last one
	left   int                     // bytes of it
	places int                     // in all
}

// turn begins another piece.
func (w *writer) turn() {
	if w.piece != nil {
		w.piece.More = true
	}
	w.piece, w.left = &fairleadv1.ProbeReport{}, pieceBytes
	w.pieces = append(w.pieces, w.piece)
}

// report adds the places of one policy or Service; begin adds it to the last piece, which takes so many bytes.
func (c *Checker) report(w *writer, checks []Check, bytes int, begin func() *[]*fairleadv1.PlaceReport) {
	var of *[]*fairleadv1.PlaceReport
	for _, check := range checks {
		if w.places++; w.places > maxReported {
			return
		}
		if w.left < bytes+placeBytes {
			w.turn()
			of = nil
		}
		if of == nil {
			of = begin()
			w.left -= bytes
		}
		o, _ := c.book.OfPlace(check)
		*of = append(*of, &fairleadv1.PlaceReport{
			Address: check.Address.AsSlice(), Port: portMessage(check.Port), Healthy: o == Good, Unhealthy: o == Bad,
		})
		w.left -= placeBytes
	}
}

func portMessage(p desired.Port) *fairleadv1.Port {
	return &fairleadv1.Port{Protocol: uint32(p.Protocol), Number: uint32(p.Number)}
}
