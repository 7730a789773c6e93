// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count the connections of all ports of a process. A nil *Metrics counts nothing.
type Metrics struct {
	open  *prometheus.GaugeVec
	ended *prometheus.CounterVec
}

// NewMetrics gives those of a registry, which are made once. Errors: something else has their names.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fairlead_connections", Help: "Open connections to a port, by how far they have come.",
		}, []string{"port", "stage"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_connections_closed_total", Help: "Connections to a port that were closed for its limits.",
		}, []string{"port", "reason"}),
	}
	var already prometheus.AlreadyRegisteredError
	switch err := registry.Register(m.open); {
	case err == nil:
	case errors.As(err, &already):
		m.open = already.ExistingCollector.(*prometheus.GaugeVec)
	default:
		return nil, fmt.Errorf("register metrics of connections: %w", err)
	}
	switch err := registry.Register(m.ended); {
	case err == nil:
	case errors.As(err, &already):
		m.ended = already.ExistingCollector.(*prometheus.CounterVec)
	default:
		return nil, fmt.Errorf("register metrics of connections: %w", err)
	}
	return m, nil
}

// prepare shows a port before anything happens there.
func (m *Metrics) prepare(port string) {
	if m == nil {
		return
	}
	for s := range stages {
		m.open.WithLabelValues(port, s.String())
	}
	for _, reason := range []string{reasonSource, reasonPort, reasonSlow, reasonDescriptors} {
		m.ended.WithLabelValues(port, reason)
	}
}

func (m *Metrics) move(port string, s Stage, by float64) {
	if m != nil {
		m.open.WithLabelValues(port, s.String()).Add(by)
	}
}

func (m *Metrics) closed(port, reason string) {
	if m != nil {
		m.ended.WithLabelValues(port, reason).Inc()
	}
}
