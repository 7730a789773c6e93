// SPDX-License-Identifier: Apache-2.0

// Package nftally reads what nftables counts in tables of ours: the packets that rules counted, and the elements of sets
// that packets fill. It reads nothing else of a table, and holds up nobody who changes one. Start at Packets, and at Away for
// the metric that comes of it.
package nftally

import (
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Counter tells how many packets the rules of chains counted since they were made; chains may lack.
type Counter interface {
	Tally() (packets map[string]uint64, err error)
}

// Away is the metric of packets that were turned away, by reason. The kernel counts them, and begins anew where rules are made
// anew: what was seen before is kept here, so that the metric only grows.
type Away struct {
	about   *prometheus.Desc
	reasons map[string]string // by chain
	kernel  Counter
	log     *slog.Logger

	mu    sync.Mutex
	seen  map[string]uint64 // of the kernel, by chain
	total map[string]uint64
}

// NewAway makes the metric of a name, whose label reason is what reasons says of each chain.
func NewAway(name, help string, reasons map[string]string, kernel Counter, log *slog.Logger) *Away {
	return &Away{
		about: prometheus.NewDesc(name, help, []string{"reason"}, nil), reasons: reasons, kernel: kernel, log: log,
		seen: map[string]uint64{}, total: map[string]uint64{},
	}
}

// Look takes in what the kernel counted. Whoever makes rules anew looks before.
func (a *Away) Look() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, err := a.kernel.Tally()
	if err != nil {
		a.log.Warn("packets that were turned away not counted", "error", err)
		return
	}
	for chain := range a.reasons {
		if now[chain] < a.seen[chain] { // it began anew
			a.seen[chain] = 0
		}
		a.total[chain] += now[chain] - a.seen[chain]
		a.seen[chain] = now[chain]
	}
}

// Describe implements prometheus.Collector.
func (a *Away) Describe(out chan<- *prometheus.Desc) { out <- a.about }

// Collect implements prometheus.Collector.
func (a *Away) Collect(out chan<- prometheus.Metric) {
	a.Look()
	a.mu.Lock()
	defer a.mu.Unlock()
	for chain, reason := range a.reasons {
		out <- prometheus.MustNewConstMetric(a.about, prometheus.CounterValue, float64(a.total[chain]), reason)
	}
}
