// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"iter"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
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

// is takes in how many endpoints each Service has.
func (s *shape) is(sizes iter.Seq[int]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.services, s.endpoints, s.upTo = 0, 0, map[float64]uint64{}
	up := []float64{0, 1, 2, 5, 10, 20, 50, 100, 1000}
	counts := make([]uint64, len(up))
	for size := range sizes {
		s.services++
		s.endpoints += uint64(size)
		for i := range up {
			if float64(size) <= up[i] {
				counts[i]++
			}
		}
	}
	for i := range up {
		s.upTo[up[i]] = counts[i]
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
