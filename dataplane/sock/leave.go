// SPDX-License-Identifier: Apache-2.0

package sock

import "slices"

// Record is a socket that got to a backend.
type Record struct {
	Socket   uint64 // its cookie
	Original Place
	Backend  Place
	Rule     uint32
}

// Ending is how sockets are ended whose backend left (balancing §16.3), so that programs connect anew.
type Ending struct {
	TCP bool // also connections; otherwise those alone that nobody would ever tell
	// Records gives the sockets that got to backends, also of those that are not connected or closed since.
	Records func() ([]Record, error)
	// End ends those of these that are connected to their backend still, and tells how many that were.
	End func([]Record) (int, error)
}

// has is whether a rule that is in the tables leads from a place to a backend, or would but for probes.
func (p *Planner) has(rule uint32, at, backend Place) bool {
	r := p.there[rule]
	if r == nil {
		return false
	}
	for i := range r.Fronts {
		f := &r.Fronts[i]
		dialled := func(a At) bool {
			here := a.place(f.Protocol)
			return here == at || here.nodePort() == here && here == at.nodePort()
		}
		is := func(b Backend) bool { return b.At.Addr().Unmap() == backend.Address && b.At.Port() == backend.Port }
		if f.Protocol == at.Protocol && slices.ContainsFunc(f.At, dialled) && (slices.ContainsFunc(f.Backends, is) || slices.ContainsFunc(f.Resting, is)) {
			return true
		}
	}
	return false
}

// endLeft ends sockets whose backend left, if any did since.
func (s *Sock) endLeft() {
	s.mu.Lock()
	left := s.left && s.known && s.ending.End != nil
	if left {
		s.left = false
	}
	s.mu.Unlock()
	if !left {
		return
	}
	ended, err := s.endGone()
	s.metrics.ended.Add(float64(ended))
	if ended > 0 {
		s.log.Info("sockets ended whose endpoint left", "sockets", ended)
	}
	text := ""
	if err != nil {
		s.metrics.failures.Inc()
		if text = err.Error(); text != s.unended {
			s.log.Warn("sockets whose endpoint left may not be ended", "err", err)
		}
	}
	s.unended = text
}

func (s *Sock) endGone() (int, error) {
	all, err := s.ending.Records()
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	gone := slices.DeleteFunc(all, func(r Record) bool {
		return r.Backend.Protocol != UDP && !s.ending.TCP || s.planner.has(r.Rule, r.Original, r.Backend)
	})
	s.mu.Unlock()
	if len(gone) == 0 {
		return 0, nil
	}
	return s.ending.End(gone)
}
