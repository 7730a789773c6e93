// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
)

// Bounds of reports. A heartbeat has to stay below what members of any release read.
const (
	maxReported = 4096 // places
	pieceBytes  = 8 << 10
	placeBytes  = 40 // a place of IPv6 takes at most
)

// Report gives what this host found out of all places, not what it took from the record, and the number of that; none if that number
// is told already. Places beyond the bound are left out.
func (c *Checker) Report(told uint64) (pieces []*fairleadv1.ProbeReport, number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if told == c.number {
		return nil, told
	}
	if !c.taken { // what is probed is not known yet; that it is nothing would be another word
		return []*fairleadv1.ProbeReport{{Begins: true, More: true}}, c.number
	}
	piece := &fairleadv1.ProbeReport{Begins: true}
	pieces = append(pieces, piece)
	var of *fairleadv1.RedirectReport
	left := pieceBytes
	reported := 0
	for _, r := range c.order {
		of = nil
		for _, check := range c.policies[r].checks {
			if reported++; reported > maxReported {
				return pieces, c.number
			}
			if left < 2*placeBytes {
				piece.More = true
				piece, of, left = &fairleadv1.ProbeReport{}, nil, pieceBytes
				pieces = append(pieces, piece)
			}
			if of == nil {
				of = &fairleadv1.RedirectReport{Number: r.Number}
				piece.Redirects = append(piece.Redirects, of)
				left -= placeBytes
			}
			o, _ := c.book.OfPlace(check)
			of.Places = append(of.Places, &fairleadv1.PlaceReport{
				Address: check.Address.AsSlice(), Port: portMessage(check.Port), Healthy: o == Good, Unhealthy: o == Bad,
			})
			left -= placeBytes
		}
	}
	return pieces, c.number
}

func portMessage(p desired.Port) *fairleadv1.Port {
	return &fairleadv1.Port{Protocol: uint32(p.Protocol), Number: uint32(p.Number)}
}
