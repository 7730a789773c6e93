// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/desired"
)

// shape is the metric of how many endpoints Services have now: one histogram, however many Services there are (K52).
type shape struct {
	about *prometheus.Desc

	mu        sync.Mutex
	services  uint64
	endpoints uint64
	upTo      map[float64]uint64 // Services with at most so many
}

func newShape() *shape {
	return &shape{about: prometheus.NewDesc("fairlead_nat_endpoints_per_service", "Services by how many endpoints they have now.", nil, nil)}
}

// is takes in the Services that there are.
func (s *shape) is(services []*desired.Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.services, s.endpoints, s.upTo = uint64(len(services)), 0, map[float64]uint64{}
	for _, most := range []float64{0, 1, 2, 5, 10, 20, 50, 100, 1000} {
		s.upTo[most] = 0
		for _, one := range services {
			if float64(len(one.Endpoints)) <= most {
				s.upTo[most]++
			}
		}
	}
	for _, one := range services {
		s.endpoints += uint64(len(one.Endpoints))
	}
}

// Describe implements prometheus.Collector.
func (s *shape) Describe(out chan<- *prometheus.Desc) { out <- s.about }

// Collect implements prometheus.Collector.
func (s *shape) Collect(out chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out <- prometheus.MustNewConstHistogram(s.about, s.services, float64(s.endpoints), s.upTo)
}
